/* SPDX-License-Identifier: MIT */
/*
 * timed HOW: prints "ready" and waits in a call with a timeout, called from functions whose frames are found by the frame
 * pointer: epoll or semtimedop; "aligned": from one that aligns its stack to ALIGNED bytes, whose distance to the frame pointer
 * differs from run to run; "variable": from one that has a variable array.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <time.h>

#define NOINLINE __attribute__((noinline))

enum { MS = 100000000 };

#ifndef ALIGNED
#define ALIGNED 64
#endif

volatile int sink;

NOINLINE static void ready(void)
{
	puts("ready");
	fflush(stdout);
}

NOINLINE int by_epoll(int n)
{
	struct epoll_event events[8];
	const int fd = epoll_create1(0);

	/* Ways that do not return, and that lead here with other arguments on the stack. */
	if (n == 7)
		printf("%d %d %d %d %d %d %d %d\n", n, n, n, n, n, n, n, n);
	if (n == 8)
		abort();
	ready();
	while (epoll_wait(fd, events, 8, MS) < 0) /* a stop ends it */
		sink++;
	return n;
}

NOINLINE int by_semaphore(int n)
{
	struct sembuf take = { 0, -1, 0 };
	const struct timespec limit = { MS / 1000, 0 };
	const int id = semget(IPC_PRIVATE, 1, 0600);

	ready();
	while (semtimedop(id, &take, 1, &limit) < 0)
		sink++;
	semctl(id, 0, IPC_RMID);
	return n;
}

NOINLINE int by_aligned(int n)
{
	char room[ALIGNED] __attribute__((aligned(ALIGNED)));
	struct epoll_event events[8];
	const int fd = epoll_create1(0);

	memset(room, n, sizeof room);
	sink += room[n];
	ready();
	while (epoll_wait(fd, events, 8, MS) < 0)
		sink++;
	return room[n + 1];
}

NOINLINE int by_variable(int n)
{
	char room[n * 100];
	struct epoll_event events[8];
	const int fd = epoll_create1(0);

	memset(room, n, sizeof room);
	ready();
	while (epoll_wait(fd, events, 8, MS) < 0)
		sink++;
	return room[n];
}

NOINLINE int many(char how, int a, int b, int c, int d, int e, int f, int g, int h)
{
	volatile char room[100];

	room[0] = (char)(a + b + c + d);
	switch (how) {
	case 'e':
		return by_epoll(a) + e + f + g + h + room[0];
	case 's':
		return by_semaphore(a) + e + f + g + h + room[0];
	case 'a':
		return by_aligned(a) + e + f + g + h + room[0];
	default:
		return by_variable(a) + e + f + g + h + room[0];
	}
}

NOINLINE int deeper(char how, int n)
{
	return n ? deeper(how, n - 1) + sink : many(how, 1, 2, 3, 4, 5, 6, 7, 8) + sink;
}

int main(int argc, char **argv)
{
	return argc == 2 ? deeper(argv[1][0], 5) : 2;
}
