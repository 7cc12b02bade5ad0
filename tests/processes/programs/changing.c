/* SPDX-License-Identifier: MIT */
/*
 * changing LOG OTHER LIBRARY...: opens and closes libraries in a loop, makes code that GDB's JIT
 * interface tells of and takes it back, and now and then runs OTHER, a program of the same shape
 * with other names, in its place. Without randomisation, all of them come to lie at the same few
 * addresses. Writes into LOG what was where, and when.
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

#include "../../jit/programs/gdb_jit.h"
#include "../../jit/programs/symfile.h"
#include "../../lib/programs/changing.h"

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
#define MAX_MADE 4
/* Functions are longer than this; what stands behind them is not asked about. */
#define SIZE 4

static struct log *history;

static __attribute__((noinline)) int OWN(int x)
{
	return x * 7;
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
	o->record = write_record(history, KIND_FILE, where(), SIZE, name(), before);
}

static void close_one(struct opened *o)
{
	atomic_store(&o->record->certain_to, now());
	dlclose(o->library);
	atomic_store(&o->record->maybe_to, now());
	o->library = NULL;
}

/* A function that the program has made, for one of a few places. */
struct made {
	struct jit_code_entry entry;
	struct symfile file;
	struct record *record; /* NULL: there is none */
};

static void make_one(struct made *m, const void *place)
{
	static uint32_t number;
	const uint64_t before = now();

	/* Also after exec it is none that was there. */
	number = number ? number + 1 : (uint32_t)(before / 1000 % 9000000);
	make_symfile(&m->file, number, (uintptr_t)place);
	m->entry.symfile_addr = (const char *)&m->file;
	m->entry.symfile_size = sizeof m->file;
	register_entry(&m->entry);
	m->record = write_record(history, KIND_GDB, place, SIZE, m->file.strings + 1, before);
}

static void take_back(struct made *m)
{
	atomic_store(&m->record->certain_to, now());
	unregister_entry(&m->entry);
	atomic_store(&m->record->maybe_to, now());
	m->record = NULL;
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
	static struct made made[MAX_MADE];
	const char *other = argv[2];
	char *code;

	if (!(personality(0xffffffff) & ADDR_NO_RANDOMIZE)) {
		personality(ADDR_NO_RANDOMIZE);
		execv(argv[0], argv);
	}
	history = mmap(NULL, sizeof *history, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	srand((unsigned)before);
	end_all(offsetof(struct record, maybe_to));
	write_record(history, KIND_FILE, (const void *)OWN, SIZE, STRING(OWN), before);
	code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < CHANGES; i++) {
		struct opened *o = &opened[rand() % MAX_OPEN];
		const int n = rand() % MAX_MADE;

		if (rand() % 3 == 0 && made[n].record)
			take_back(&made[n]);
		else if (rand() % 3 == 0 && !made[n].record)
			make_one(&made[n], code + n * CODE_SIZE);
		else if (o->library)
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
