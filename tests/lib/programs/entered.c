/* SPDX-License-Identifier: MIT */
/*
 * For a program built with -finstrument-functions, itself built without: writes each function that is entered to a file of
 * its thread, ENTERED.TID of the environment: its address, and that of the code that says so. The first entry has
 * the address of main(); zeroes follow the last one. Of a process that is forked nothing is written.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	ROOM = 1 << 26 /* entries; the file is sparse */
};

int main(int argc, char **argv);

struct entry {
	uintptr_t function;
	uintptr_t from;
};

static __thread struct entry *entries;
static __thread size_t n_entries;
static int is_unwanted;

void __cyg_profile_func_enter(void *function, void *from);
void __cyg_profile_func_exit(void *function, void *from);

static void stop(void)
{
	is_unwanted = 1;
}

static void start(void)
{
	const char *prefix = getenv("ENTERED");
	char path[4096];
	int file;

	if (!prefix) {
		is_unwanted = 1;
		return;
	}
	(void)snprintf(path, sizeof path, "%s.%d", prefix, (int)syscall(SYS_gettid));
	file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
	if (file < 0 || ftruncate(file, ROOM * sizeof *entries))
		abort();
	entries = mmap(NULL, ROOM * sizeof *entries, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (entries == MAP_FAILED)
		abort();
	close(file);
	pthread_atfork(NULL, NULL, stop);
	entries[n_entries++].function = (uintptr_t)main;
}

void __cyg_profile_func_enter(void *function, void *from)
{
	struct entry *e;

	(void)from;
	if (is_unwanted)
		return;
	if (!entries)
		start();
	if (is_unwanted)
		return;
	if (n_entries == ROOM)
		abort();
	/* A handler of a signal may come here, too. */
	e = entries + __atomic_fetch_add(&n_entries, 1, __ATOMIC_RELAXED);
	e->function = (uintptr_t)function;
	e->from = (uintptr_t)__builtin_return_address(0);
}

void __cyg_profile_func_exit(void *function, void *from)
{
	(void)function;
	(void)from;
}
