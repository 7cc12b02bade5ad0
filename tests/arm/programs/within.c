/* SPDX-License-Identifier: MIT */
/* Calls of the kernel within functions that have sites, before others, behind them and as tail calls. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>

#define KEPT __attribute__((noinline))

KEPT int leaf(int n)
{
	__asm__ volatile("");
	return n + 1;
}

KEPT long tail(int fd)
{
	return write(fd, "t\n", 2);
}

KEPT int opens(const char *path)
{
	int fd;

	leaf(1);
	fd = open(path, O_RDONLY);
	leaf(2);
	close(fd);
	return fd;
}

KEPT int deep(int n)
{
	const int fd = n ? deep(n - 1) : opens("/proc/self/status");

	getppid();
	return fd;
}

int main(void)
{
	leaf(0);
	(void)!write(1, "a\n", 2);
	tail(1);
	deep(2);
	leaf(3);
	(void)!write(1, "b\n", 2);
	return 0;
}
