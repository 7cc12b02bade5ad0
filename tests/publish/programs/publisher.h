/* SPDX-License-Identifier: MIT */
/*
 * Functions of made code that call each other through functions of C++, each with another kind of
 * frame, published with <fathom/jit.h>. What a stack must show is known: frames are counted by
 * those who make them.
 */
#ifndef PUBLISHER_H
#define PUBLISHER_H

#include <dlfcn.h>
#include <execinfo.h>
#include <fathom/jit.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* What made code calls, and made code itself: calls next(argument) and adds 1. */
typedef long callback_fn(long argument);
typedef long made_fn(callback_fn *next, long argument);

#include "code_of_machine.h"

/* A compiler's: copied, with its call frame information. */
extern "C" __attribute__((noinline, section("stencils"), no_sanitize("thread"))) long stencil(
	callback_fn *next, long argument)
{
	return next(argument) + 1;
}
extern "C" const unsigned char __start_stencils[], __stop_stencils[];

enum kind { FRAMED, PUSHING, RESERVING, COPIED, KINDS };
static const char *const kind_names[] = { "framed", "pushing", "reserving", "copied" };

/* Where .eh_frame of this program is: .eh_frame_hdr says it (LSB 5.0, 10.6.2). */
static int find_eh_frame(struct dl_phdr_info *info, size_t, void *ret)
{
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME) {
			const char *hdr =
				(const char *)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
			int off;

			memcpy(&off, hdr + 4, sizeof off);
			*(const void **)ret = hdr + 4 + off;
		}
	return 1;
}

/* Found once, before there are threads: a child that is forked while another thread is within
 * dl_iterate_phdr() can never call that (glibc). */
static const void *const own_eh_frame = [] {
	const void *found = nullptr;

	dl_iterate_phdr(find_eh_frame, &found);
	return found;
}();

struct fathom_jit_unwind rule_of(enum kind kind)
{
	struct fathom_jit_unwind u = {};

	u.size = sizeof u;
	if (kind == FRAMED) {
		u.kind = FATHOM_JIT_FRAME_POINTER;
		u.from = FRAMED_FROM;
		u.until = FRAMED_UNTIL;
		u.frame = FRAMED_FRAME;
	} else if (kind == PUSHING) {
		u.kind = FATHOM_JIT_EVENTS;
		u.events = push_events;
		u.n_events = sizeof push_events / sizeof *push_events;
	} else if (kind == RESERVING) {
		u.kind = FATHOM_JIT_RESERVED;
	} else {
		u.kind = FATHOM_JIT_EH_FRAME;
		u.eh_frame = own_eh_frame;
		u.eh_frame_size = 1 << 20;
		u.eh_frame_code = (uintptr_t)stencil;
	}
	return u;
}

/* Writes code of @kind to @at; returns its size. */
static size_t write_code(enum kind kind, unsigned char *at)
{
	static const struct {
		const void *bytes;
		size_t size;
	} codes[] = { { framed, sizeof framed },
		      { pushing, sizeof pushing },
		      { reserving, sizeof reserving },
		      { __start_stencils, (size_t)(__stop_stencils - __start_stencils) } };

	memcpy(at, codes[kind].bytes, codes[kind].size);
	__builtin___clear_cache((char *)at, (char *)at + codes[kind].size);
	return codes[kind].size;
}

static const struct fathom_jit_line lines[] = { { 0, 10, 1, 0, nullptr },
						{ 5, 11, 7, 0, nullptr },
						{ 9, 12, 0, 0, "/src/inlined.lang" } };

static int check(int err, const struct fathom_errinfo *info)
{
	if (err) {
		fprintf(stderr, "publisher: %s: %s\n", fathom_err_name(err), info->what);
		exit(3);
	}
	return err;
}

/* A function of @kind at @at, called @name. */
static struct fathom_jit_function describe(enum kind kind, unsigned char *at, const char *name,
					   const struct fathom_jit_unwind *rule)
{
	struct fathom_jit_function f = {};

	f.size = sizeof f;
	f.code = at;
	f.code_size = write_code(kind, at);
	f.name = name;
	f.unwind = rule;
	f.file = "/src/program.lang";
	f.lines = lines;
	f.n_lines = 3;
	return f;
}

static unsigned char *memory(size_t size)
{
	void *at = mmap(nullptr, size, PROT_READ | PROT_WRITE | PROT_EXEC,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		abort();
	return (unsigned char *)at;
}

static struct fathom_jit_arena *new_arena(unsigned char *at, size_t size,
					  const struct fathom_jit_unwind *rule)
{
	struct fathom_jit_arena_options o = {};
	struct fathom_jit_arena *arena = nullptr;
	struct fathom_errinfo info;

	o.size = sizeof o;
	o.unwind = rule;
	check(fathom_jit_arena_create(at, size, &o, &arena, &info), &info);
	return arena;
}

/* Functions in the order in which they call each other. */
struct made {
	unsigned char *at;
	size_t size;
	enum kind kind;
	char name[40];
};
static struct made chain[64];
static long n_chain;
static callback_fn *at_the_end;

/* Calls function @i, which calls this with the next number. */
extern "C" __attribute__((noinline)) long go(long i)
{
	long value;

	if (i == n_chain)
		return at_the_end(i);
	if (chain[i].kind == RESERVING)
		value = shim((made_fn *)chain[i].at, go, i + 1);
	else
		value = ((made_fn *)chain[i].at)(go, i + 1);
	__asm__ volatile("" ::: "memory");
	return value;
}

/*
 * With APART in the environment functions stand in three arenas, one behind the other: that in the
 * middle has a rule for all of it. Returns where function @i stands, and in which.
 */
static unsigned char *place_of(unsigned char *at, long i, enum kind kind,
			       struct fathom_jit_arena **arena)
{
	static struct fathom_jit_arena *apart[3];
	const int which = kind == RESERVING ? 1 : kind == COPIED ? 2 : 0;

	if (!getenv("APART"))
		return at + 256 * i;
	at += 1 << 21;
	if (!apart[0]) {
		const struct fathom_jit_unwind all = rule_of(RESERVING);

		for (int k = 0; k < 3; k++)
			apart[k] = new_arena(at + (k << 16), 1 << 16, k == 1 ? &all : nullptr);
	}
	*arena = apart[which];
	return at + (which << 16) + 256 * i;
}

/* Fills the chain with @n functions of all kinds at @at, 256 bytes apart, and publishes them. */
static struct fathom_jit_arena *publish_chain(unsigned char *at, long n)
{
	struct fathom_jit_arena *arena = new_arena(at, 1 << 20, nullptr);
	struct fathom_errinfo info;

	for (n_chain = 0; n_chain < n; n_chain++) {
		struct made *m = &chain[n_chain];
		struct fathom_jit_unwind rule;
		struct fathom_jit_function f;
		struct fathom_jit_arena *home = arena;

		m->kind = (enum kind)(n_chain % KINDS);
		m->at = place_of(at, n_chain, m->kind, &home);
		snprintf(m->name, sizeof m->name, "made_%ld_%s", n_chain, kind_names[m->kind]);
		rule = rule_of(m->kind);
		f = describe(m->kind, m->at, m->name, &rule);
		m->size = f.code_size;
		if (home != arena && m->kind == RESERVING)
			f.unwind = nullptr;
		check(fathom_jit_add(home, &f, &info), &info);
	}
	return arena;
}

/* Prints what is at @pc, a return address: a name of the chain, or one that dladdr() knows. */
[[maybe_unused]] static void print_pc(const void *pc)
{
	Dl_info info;

	for (long i = 0; i < n_chain; i++)
		if ((const unsigned char *)pc > chain[i].at &&
		    (const unsigned char *)pc <= chain[i].at + chain[i].size) {
			printf("frame %s\n", chain[i].name);
			return;
		}
	printf("frame %s\n",
	       dladdr((const char *)pc - 1, &info) && info.dli_sname ? info.dli_sname : "?");
}

#endif
