/* SPDX-License-Identifier: MIT */
/*
 * disk FILE TURNS BYTES: makes a file of 16 MB; reads so many bytes of it, so often, in each of
 * some ways, in a function of that name: past the page cache, and by page faults. Sleeps as often.
 * Prints of each turn "NAME TID BEGIN END BLOCKS", times of the monotonic clock in ns; BLOCKS: read
 * from a disk for it, of 512 bytes, as the kernel counts them.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "clock_of.h"

#define FILE_SIZE ((size_t)16 << 20)
#define MAX_TURNS 1024

/* A function whose call of another one is not its end: it has a frame. */
#define NAMED __attribute__((noinline, optimize("no-optimize-sibling-calls")))

static const char *path;
static size_t n_bytes;
static char *bytes;
static int fd;

NAMED void reads(size_t at)
{
	(void)!pread(fd, bytes, n_bytes, (off_t)at);
}

NAMED void faults(size_t at)
{
	volatile const char *map = mmap(NULL, n_bytes, PROT_READ, MAP_PRIVATE, fd, (off_t)at);

	/* One page at a time is read, of every fourth. */
	if (map == MAP_FAILED || madvise((void *)(uintptr_t)map, n_bytes, MADV_RANDOM))
		exit(3);
	for (size_t i = 0; i < n_bytes; i += 16384)
		(void)map[i];
	munmap((void *)(uintptr_t)map, n_bytes);
}

NAMED void sleeps(size_t at)
{
	const struct timespec t = { 0, 300000 + (long)(at % 2) };

	nanosleep(&t, NULL);
}

static const struct {
	const char *name;
	void (*call)(size_t at);
	int flags;
} all[] = {
	{ "reads", reads, O_DIRECT },
	{ "faults", faults, 0 },
	{ "sleeps", sleeps, 0 },
};

static struct turn {
	uint64_t begin;
	uint64_t end;
	long blocks;
} turns[3][MAX_TURNS];

static long blocks_read(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_inblock;
}

static int make_file(void)
{
	const int made = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	memset(bytes, 'x', n_bytes);
	for (size_t at = 0; at < FILE_SIZE; at += n_bytes)
		if (write(made, bytes, n_bytes) != (ssize_t)n_bytes)
			return 1;
	return fsync(made) || close(made);
}

int main(int argc, char **argv)
{
	const int n = argc > 3 ? atoi(argv[2]) : 0;

	if (n < 1 || n > MAX_TURNS)
		return 2;
	path = argv[1];
	n_bytes = (size_t)atol(argv[3]);
	if (posix_memalign((void **)&bytes, 4096, n_bytes) || make_file())
		return 3;
	for (int k = 0; k < 3; k++) {
		fd = open(path, O_RDONLY | all[k].flags);
		if (fd < 0)
			return 4;
		for (int i = 0; i < n; i++) {
			struct turn *t = &turns[k][i];

			posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
			t->blocks = blocks_read();
			t->begin = clock_of(CLOCK_MONOTONIC);
			all[k].call((size_t)i * n_bytes % FILE_SIZE);
			t->end = clock_of(CLOCK_MONOTONIC);
			t->blocks = blocks_read() - t->blocks;
		}
		close(fd);
	}
	for (int k = 0; k < 3; k++)
		for (int i = 0; i < n; i++)
			printf("%s %d %llu %llu %ld\n", all[k].name, (int)getpid(),
			       (unsigned long long)turns[k][i].begin,
			       (unsigned long long)turns[k][i].end, turns[k][i].blocks);
	return 0;
}
