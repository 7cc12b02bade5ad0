/* SPDX-License-Identifier: MIT */
/*
 * changing LOG OTHER LIBRARY...: opens and closes libraries in a loop, and now and then runs OTHER,
 * a program of the same shape with other names, in its place. Without randomisation, all of them
 * come to lie at the same few addresses. Writes into LOG what was where, and when.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <unistd.h>

#include "changing.h"

#ifdef OTHER
#define OWN own_in_other
#else
#define OWN own_in_first
#endif
#define STRING_OF(x) #x
#define STRING(x)    STRING_OF(x)

/* Changes of one program before the other takes its place. */
#define CHANGES  300
#define MAX_OPEN 4

static struct log *history;

static __attribute__((noinline)) int OWN(int x)
{
	return x * 7;
}

static struct record *write_record(const void *start, const char *name, uint64_t before)
{
	const uint64_t n = atomic_load(&history->n);
	struct record *r = &history->record[n % RECORDS];

	/* Functions are longer than this; what stands behind them is not asked about. */
	r->start = (uintptr_t)start;
	r->size = 4;
	r->maybe_from = before;
	r->certain_from = now();
	atomic_store(&r->certain_to, UINT64_MAX);
	atomic_store(&r->maybe_to, UINT64_MAX);
	snprintf(r->name, sizeof r->name, "%s", name);
	atomic_store(&history->n, n + 1);
	return r;
}

struct opened {
	void *library;
	struct record *record;
};

static void open_one(struct opened *o, const char *path)
{
	const uint64_t before = now();
	const void *(*where)(void);
	const char *(*name)(void);

	o->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	where = (const void *(*)(void))dlsym(o->library, "where");
	name = (const char *(*)(void))dlsym(o->library, "name");
	o->record = write_record(where(), name(), before);
}

static void close_one(struct opened *o)
{
	atomic_store(&o->record->certain_to, now());
	dlclose(o->library);
	atomic_store(&o->record->maybe_to, now());
	o->library = NULL;
}

/* Whatever the program had that was here before is gone. */
static void end_all(uint64_t field_offset)
{
	for (int i = 0; i < RECORDS; i++) {
		_Atomic uint64_t *time =
			(_Atomic uint64_t *)((char *)&history->record[i] + field_offset);

		if (atomic_load(time) == UINT64_MAX)
			atomic_store(time, now());
	}
}

static void pause_shortly(void)
{
	const struct timespec t = { 0, rand() % 400000 };

	nanosleep(&t, NULL);
}

int main(int argc, char **argv)
{
	const uint64_t before = now();
	const int fd = open(argv[1], O_RDWR | O_CLOEXEC);
	struct opened opened[MAX_OPEN] = { 0 };
	const char *other = argv[2];

	if (!(personality(0xffffffff) & ADDR_NO_RANDOMIZE)) {
		personality(ADDR_NO_RANDOMIZE);
		execv(argv[0], argv);
	}
	history = mmap(NULL, sizeof *history, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	srand((unsigned)before);
	end_all(offsetof(struct record, maybe_to));
	write_record((const void *)OWN, STRING(OWN), before);
	for (int i = 0; i < CHANGES; i++) {
		struct opened *o = &opened[rand() % MAX_OPEN];

		if (o->library)
			close_one(o);
		else
			open_one(o, argv[3 + rand() % (argc - 3)]);
		pause_shortly();
	}
	end_all(offsetof(struct record, certain_to));
	argv[2] = argv[0];
	argv[0] = (char *)other;
	execv(argv[0], argv);
	return OWN(argc);
}
