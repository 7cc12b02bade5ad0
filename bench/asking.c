/* SPDX-License-Identifier: MIT */
/*
 * asking N [PATH]: makes N system calls without arguments in memory, or N that take PATH, and
 * prints how many nanoseconds they took.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	const long n = argc > 1 ? atol(argv[1]) : 0;
	struct timespec begin;
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (long i = 0; i < n; i++)
		(void)(argc > 2 ? syscall(SYS_access, argv[2], F_OK) : syscall(SYS_getppid));
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%lld\n",
	       (end.tv_sec - begin.tv_sec) * 1000000000LL + (end.tv_nsec - begin.tv_nsec));
	return 0;
}
