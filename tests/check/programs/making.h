/* SPDX-License-Identifier: MIT */
/*
 * What the programs of this suite make code with: one arena, code that is copied into it from the
 * program's own text, and a table of runs.
 */
#ifndef MAKING_H
#define MAKING_H

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

#include <fathom/jit.h>

using callback = long(long);
using made = long(callback *, long, const void *);

#define LABEL(name) extern "C" const unsigned char name[]
#define CODE(name) \
	LABEL(name); \
	LABEL(name##_end)

enum { RBX = 3, RBP = 6 };

static unsigned char *memory;
static size_t used;
static fathom_jit_arena *arena;

static void check(int err, const fathom_errinfo &info)
{
	if (!err)
		return;
	fprintf(stderr, "%s: %s\n", fathom_err_name(err), info.what);
	exit(3);
}

static void begin(int protection = PROT_READ | PROT_WRITE | PROT_EXEC)
{
	fathom_errinfo info;

	memory = static_cast<unsigned char *>(
		mmap(nullptr, 1 << 16, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	check(fathom_jit_arena_create(memory, 1 << 16, nullptr, &arena, &info), info);
}

static fathom_jit_unwind rule(unsigned kind)
{
	fathom_jit_unwind u = {};

	u.size = sizeof u;
	u.kind = kind;
	return u;
}

static fathom_jit_unwind rule_of(const fathom_jit_event *events, size_t n)
{
	fathom_jit_unwind u = rule(FATHOM_JIT_EVENTS);

	u.events = events;
	u.n_events = n;
	return u;
}

static void publish(const char *name, unsigned char *at, size_t size, const fathom_jit_unwind *u)
{
	fathom_jit_function f = {};
	fathom_errinfo info;

	f.size = sizeof f;
	f.code = at;
	f.code_size = size;
	f.name = name;
	f.unwind = u;
	check(fathom_jit_add(arena, &f, &info), info);
}

static unsigned char *copy(const unsigned char *from, const unsigned char *end)
{
	unsigned char *at = memory + used;

	memcpy(at, from, static_cast<size_t>(end - from));
	used += 256;
	return at;
}

static made *make_at(const char *name, const unsigned char *from, const unsigned char *end,
		     const fathom_jit_unwind &u)
{
	unsigned char *at = copy(from, end);

	publish(name, at, static_cast<size_t>(end - from), &u);
	return reinterpret_cast<made *>(at);
}
#define MAKE(name, rule) make_at(#name, name, name##_end, rule)
#define AT(label, of) static_cast<uint32_t>(label - of)

static callback *as_callback(made *code)
{
	return reinterpret_cast<callback *>(reinterpret_cast<uintptr_t>(code));
}

static long plain(long argument)
{
	return argument;
}

static void expect(long instructions)
{
	printf("instructions %ld\n", instructions);
}

static void require(bool is, const char *what)
{
	if (is)
		return;
	printf("failed: %s\n", what);
	exit(4);
}

static long n;

struct named {
	const char *name;
	void (*run)();
};

// Runs what the first argument names; @n is the second.
template <size_t count> static int choose(const named (&runs)[count], int argc, char **argv)
{
	setvbuf(stdout, nullptr, _IOLBF, 0);
	n = argc > 2 ? atol(argv[2]) : 0;
	begin();
	for (const auto &r : runs)
		if (argc > 1 && !strcmp(argv[1], r.name)) {
			r.run();
			return 0;
		}
	fprintf(stderr, "%s: no such run\n", argv[0]);
	return 2;
}

#endif
