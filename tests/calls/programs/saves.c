/* SPDX-License-Identifier: MIT */
/* saves FILE: writes a file, by a function that makes system calls; says which arguments it has
 * got. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

__attribute__((noinline)) static int save(const char *path)
{
	const int fd = creat(path, 0644);
	const ssize_t n = write(fd, "hello", 5);

	return fsync(fd) + close(fd) + (int)n;
}

int main(int argc, char **argv)
{
	const int n = argc > 1 ? save(argv[1]) : 0;

	printf("%d %d\n", argc, n);
	for (int i = 1; i < argc; i++)
		puts(argv[i]);
	return 3;
}
