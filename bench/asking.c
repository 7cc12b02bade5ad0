/* SPDX-License-Identifier: MIT */
/* asking N [PATH]: makes N system calls without arguments in memory, or N that take PATH. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	const long n = argc > 1 ? atol(argv[1]) : 0;

	for (long i = 0; i < n; i++)
		(void)(argc > 2 ? syscall(SYS_access, argv[2], F_OK) : syscall(SYS_getppid));
	return 0;
}
