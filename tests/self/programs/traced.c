/* SPDX-License-Identifier: MIT */
/*
 * traced TOOL ROUNDS: unwinds the stack below some 64 calls ROUNDS times, and prints how many frames that were. TOOL: fathom,
 * libgcc or libunwind.
 */
#define _GNU_SOURCE
#include "check.h"

#include <dlfcn.h>
#include <unwind.h>

enum { DEPTH = 64, MAX = 256 };

static uint64_t pcs[MAX];
static uint8_t kinds[MAX];
static const char *tool;
static long rounds;
static int (*unw_backtrace)(void **, int);
volatile int sink;

static _Unwind_Reason_Code count(struct _Unwind_Context *c, void *data)
{
	pcs[(*(size_t *)data)++ % MAX] = _Unwind_GetIP(c);
	return _URC_NO_REASON;
}

static size_t unwind(void)
{
	const struct fathom_unwind_options o = { .size = sizeof o };
	struct fathom_unwind_result found = { .size = sizeof found };
	static void *addresses[MAX];
	size_t n = 0;

	if (unw_backtrace)
		return (size_t)unw_backtrace(addresses, MAX);
	if (!strcmp(tool, "libgcc")) {
		_Unwind_Backtrace(count, &n);
		return n;
	}
	expect(!fathom_unwind(self, &o, pcs, kinds, MAX, &found) && found.stop == FATHOM_STOP_ENTRY);
	return found.n;
}

/* Two that take turns, with other registers saved. */
__attribute__((noinline)) static int other(int n);

__attribute__((noinline)) static int deeper(int n)
{
	size_t frames = 0;

	if (n)
		return other(n - 1) + sink;
	for (long i = 0; i < rounds; i++)
		frames = unwind();
	expect(frames > DEPTH && frames < DEPTH + 16);
	printf("%zu\n", frames);
	return 0;
}

static int other(int n)
{
	const int a = sink, b = sink, c = sink, d = sink;

	return (n ? deeper(n - 1) : deeper(0)) + a * b + c * d;
}

int main(int argc, char **argv)
{
	void *library;

	if (argc != 3)
		return 2;
	tool = argv[1];
	rounds = atol(argv[2]);
	start(FATHOM_SELF_UNWIND);
	if (!strcmp(tool, "libunwind")) {
		library = dlopen("libunwind.so.8", RTLD_NOW);
		*(void **)&unw_backtrace = library ? dlsym(library, "unw_backtrace") : NULL;
		expect(unw_backtrace);
	}
	sink = deeper(DEPTH);
	return end();
}
