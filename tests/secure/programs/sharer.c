/* SPDX-License-Identifier: MIT */
/*
 * sharer swap FILE | sharer shrink: calls functions until its input ends. Another process has the same descriptors; nobody
 * traces it. It waits for a new one, which a tracer has made: with swap it puts FILE in its place, which it may only read;
 * with shrink it takes all memory out of it, after a while. Prints "met" each
 * time that it met one, and how often it took memory out.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Shared by both. */
static struct {
	_Atomic int done;
	int fd; /* that is free, until a tracer takes it */
	int file;
} *common;

__attribute__((noinline)) void counted(void)
{
	__asm__ volatile("" ::: "memory");
}

/* Says that it has met one. */
static void meet(void)
{
	(void)!write(1, "met\n", 4);
}

static int swap(void *data)
{
	(void)data;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		if (fcntl(common->fd, F_GETFD) >= 0 && dup2(common->file, common->fd) >= 0) {
			meet();
			while (fcntl(common->fd, F_GETFD) >= 0)
				;
		}
	return 0;
}

static int shrink(void *data)
{
	(void)data;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		const int copy = fcntl(common->fd, F_DUPFD, 100);

		if (copy < 0)
			continue;
		/* The tracer reads meanwhile. */
		meet();
		(void)poll(NULL, 0, 100);
		common->done += !ftruncate(copy, 0);
		(void)poll(NULL, 0, 100);
		(void)close(copy);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static char stack[1 << 16];
	struct pollfd input = { .fd = 0, .events = POLLIN };
	pid_t other;

	common = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	common->file = argc > 2 ? open(argv[2], O_RDONLY) : 0;
	common->fd = dup(0);
	(void)close(common->fd);
	other = clone(argc > 2 ? swap : shrink, stack + sizeof stack, CLONE_FILES | SIGCHLD, NULL);
	if (common->file < 0 || other < 0)
		return 1;
	printf("ready\n");
	fflush(stdout);
	while (!poll(&input, 1, 1))
		counted();
	(void)kill(other, SIGKILL);
	printf("end %d\n", common->done);
	return 0;
}
