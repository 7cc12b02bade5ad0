/* SPDX-License-Identifier: MIT */
/*
 * gaps FILE SLEEPERS: reads the clock again and again, and notes in FILE, which it maps, the longest time in nanoseconds
 * between two reads; who writes 0 there begins anew. So many other threads sleep. Prints "ready".
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void *wait_for_ever(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static __attribute__((noinline)) void note_gaps(_Atomic uint64_t *longest)
{
	for (uint64_t before = now();;) {
		const uint64_t at = now();

		if (at - before > *longest)
			*longest = at - before;
		before = at;
	}
}

int main(int argc, char **argv)
{
	const int fd = argc == 3 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
	pthread_t thread;
	void *shared;

	if (fd < 0 || ftruncate(fd, 4096))
		return 2;
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED)
		return 2;
	for (int i = atoi(argv[2]); i > 0; i--)
		if (pthread_create(&thread, NULL, wait_for_ever, NULL))
			return 2;
	puts("ready");
	fflush(stdout);
	note_gaps(shared);
}
