/* SPDX-License-Identifier: MIT */
/*
 * outside [EUID [EGID]]: becomes another user or group for the time being, publishes code, makes a session, and prints
 * what the library has taken from the environment. -DVENDORED: with the publisher's two files alone.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef VENDORED
#include "fathom_jit.h"
#else
#include <fathom/fathom.h>
#include <fathom/jit.h>
#endif

static int publish(void)
{
	/* ret */
	static const uint8_t code[] = { 0xc3 };
	struct fathom_jit_arena_options options = { .size = sizeof options };
	struct fathom_jit_function f = { .size = sizeof f, .code_size = sizeof code, .name = "made" };
	struct fathom_jit_arena *arena;
	uint8_t *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return 1;
	memory[0] = code[0];
	f.code = memory;
	if (fathom_jit_arena_create(memory, 4096, &options, &arena, NULL) || fathom_jit_add(arena, &f, NULL))
		return 1;
	printf("pid %d\nconsumers %u\n", getpid(), (unsigned)fathom_jit_consumers());
	return 0;
}

#ifndef VENDORED
static int make_session(void)
{
	struct fathom *session;

	if (fathom_create(NULL, &session, NULL))
		return 1;
	printf("cache %s\n", fathom_cache_dir(session) ? fathom_cache_dir(session) : "none");
	fathom_destroy(session);
	return 0;
}
#endif

int main(int argc, char **argv)
{
	if (argc > 2 && setegid((gid_t)atoi(argv[2])))
		return 2;
	if (argc > 1 && seteuid((uid_t)atoi(argv[1])))
		return 2;
	if (publish())
		return 1;
#ifdef VENDORED
	return 0;
#else
	return make_session();
#endif
}
