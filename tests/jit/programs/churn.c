/* SPDX-License-Identifier: MIT */
/*
 * churn LOG NANOSECONDS: registers and unregisters code with GDB's JIT interface all the time. All
 * of it is at the same few addresses, in the same few entries and symbol files, so that what is
 * gone, or not there yet, looks like what is there. A function comes and another leaves in so much
 * time.
 *
 * LOG is shared memory: when each function came, as what it is called by its number, and when it
 * left, in nanoseconds of the monotonic clock. Where the functions can be is printed first.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "gdb_jit.h"
#include "symfile.h"

#define SLOTS     4
/* As many functions as can be logged. */
#define FUNCTIONS (1u << 22)

struct logged {
	_Atomic uint64_t came;
	_Atomic uint64_t left;
};

static struct jit_code_entry entries[SLOTS];
static struct symfile symfiles[SLOTS];
static uint32_t functions[SLOTS];
static struct logged *logged;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Makes the symbol file of what is not registered yet. */
static void prepare(unsigned slot, uint32_t number, uint64_t code)
{
	functions[slot] = number;
	make_symfile(&symfiles[slot], number, code);
}

static void come(unsigned slot)
{
	struct jit_code_entry *e = &entries[slot];

	e->symfile_addr = (const char *)&symfiles[slot];
	e->symfile_size = sizeof symfiles[slot];
	atomic_store(&logged[functions[slot]].came, now());
	register_entry(e);
}

static void leave(unsigned slot)
{
	unregister_entry(&entries[slot]);
	atomic_store(&logged[functions[slot]].left, now());
}

static void wait_for(uint64_t pause)
{
	for (const uint64_t end = now() + pause; now() < end;)
		if (pause > 50000)
			usleep((useconds_t)(pause / 1000));
}

int main(int argc, char **argv)
{
	const int fd = argc == 3 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
	const uint64_t pause = argc == 3 ? (uint64_t)atoi(argv[2]) : 0;
	unsigned char *code =
		mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (fd < 0 || ftruncate(fd, FUNCTIONS * sizeof *logged))
		return 1;
	logged = mmap(NULL, FUNCTIONS * sizeof *logged, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	printf("0x%lx\n", (unsigned long)code);
	fflush(stdout);
	for (uint32_t i = 1; i < FUNCTIONS; i++) {
		const unsigned slot = i % SLOTS;
		/* Where the code is changes more slowly than where its entry is, and overlaps. */
		const uint64_t at = (uint64_t)code + i / 3 % 5 * CODE_SIZE;

		if (functions[slot])
			leave(slot);
		wait_for(pause / 4);
		prepare(slot, i, at);
		wait_for(pause / 4);
		come(slot);
		wait_for(pause / 2);
	}
	return 0;
}
