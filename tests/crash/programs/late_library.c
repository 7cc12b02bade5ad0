/* SPDX-License-Identifier: MIT */
/*
 * A library that crashes: in a function that it exports or not, at a call of data, or in a function that code
 * which it has made and published calls. (WITH_PUBLISHER: it has a copy of the publisher.)
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define NOINLINE __attribute__((noinline, noclone))

volatile int late_sink;

/* Readable, and no code. */
static const char text[64] = "no code";
static char data[64];

NOINLINE void late_exported(void)
{
	*(volatile int *)0x1230 = 1;
	late_sink++;
}

NOINLINE static void late_static(const char *way)
{
	void (*volatile call)(void) = late_exported;

	if (strcmp(way, "static") == 0)
		*(volatile int *)0x1240 = 1;
	if (strcmp(way, "constant") == 0)
		call = (void (*)(void))(uintptr_t)text;
	if (strcmp(way, "data") == 0)
		call = (void (*)(void))(uintptr_t)data;
	if (strcmp(way, "heap") == 0)
		call = (void (*)(void))(uintptr_t)malloc(64);
	call();
	late_sink++;
}

#ifdef WITH_PUBLISHER
#include "fathom_jit.h"

/* sub $24, %rsp; mov %rsi, %rdi; call *%rdx; add $24, %rsp; ret: no frame pointer leads through it. */
static const unsigned char code[] = { 0x48, 0x83, 0xec, 24, 0x48, 0x89, 0xf7, 0xff, 0xd2, 0x48, 0x83, 0xc4, 24, 0xc3 };

static void *make(const char *name)
{
	static const struct fathom_jit_event events[] = {
		{ .offset = 4, .value = 24, .kind = FATHOM_JIT_SUB },
		{ .offset = 13, .value = 24, .kind = FATHOM_JIT_ADD },
	};
	const struct fathom_jit_unwind unwind = {
		.size = sizeof unwind, .kind = FATHOM_JIT_EVENTS, .events = events, .n_events = 2,
	};
	const struct fathom_jit_arena_options options = { .size = sizeof options };
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct fathom_jit_function f = {
		.size = sizeof f, .code = memory, .code_size = sizeof code, .name = name, .unwind = &unwind,
	};
	struct fathom_jit_arena *arena;

	memcpy(memory, code, sizeof code);
	if (fathom_jit_arena_create(memory, 4096, &options, &arena, NULL) || fathom_jit_add(arena, &f, NULL))
		abort();
	return memory;
}

typedef void made(const char *unused, const char *way, void (*f)(const char *));

static void call_made(const char *way)
{
	((made *)(uintptr_t)make("made@here"))(NULL, way, late_static);
	late_sink++;
}
#endif

void late_go(const char *way)
{
#ifdef WITH_PUBLISHER
	call_made(way);
#else
	late_static(way);
#endif
	late_sink++;
}
