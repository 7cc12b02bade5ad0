/* SPDX-License-Identifier: MIT */
/* The library: by inlined and other functions to a report, or to a fault. */
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calls.h"

#define NOINLINE __attribute__((noinline))
#define INLINE static inline __attribute__((always_inline))

struct call calls[64];
int depth;

/* The innermost call first. */
void tell(void)
{
	for (int i = depth; i--;)
		printf("call %s %d\n", calls[i].function, calls[i].line);
	puts("told");
	fflush(stdout);
}

NOINLINE void report(const char *how)
{
	void *frames[64];
	char **texts;
	int n;

	calls[depth++] = (struct call){ __func__, __LINE__ + 1 };
	n = backtrace(frames, 64);
	tell();
	if (strstr(how, "fd")) {
		backtrace_symbols_fd(frames, n, 1);
	} else {
		texts = backtrace_symbols(frames, n);
		for (int i = 0; i < n; i++)
			puts(texts[i]);
	}
	fflush(stdout);
	_exit(0);
}

enum { FAULT_LINE = __LINE__ + 2 };
/* Its first instruction is the fault: the byte before is not of this function. */
NOINLINE void fault(volatile int *p) { *p = 1; }

/* Read each time: compilers make no functions of their own for a pointer that they know. */
static volatile int *volatile nowhere;

/* Behind the end of what it has. */
enum { OVERFLOW_LINE = __LINE__ + 3 };
NOINLINE void overflow(volatile char *p, size_t n)
{
	p[n] = 1;
}

static const char *how_now;

static void handler(int number)
{
	(void)number;
	if (strcmp(how_now, "signal-overflow") == 0)
		CALL_FAULT((tell(), overflow(malloc(8), 8)), "overflow", OVERFLOW_LINE);
	else
		CALL(report(how_now));
}

enum { TRAP_LINE = __LINE__ + 3 };
NOINLINE void trap(void)
{
	__builtin_trap();
}

NOINLINE static void deep(const char *how)
{
	if (strncmp(how, "report", 6) == 0) {
		CALL(report(how));
	} else if (strncmp(how, "signal", 6) == 0) {
		how_now = how;
		signal(SIGSEGV, handler);
		CALL_FAULT(fault(nowhere), "fault", FAULT_LINE);
		/* So that the call of fault() below is not made one with this. */
		__asm__ volatile("nop");
	} else if (strcmp(how, "segv") == 0) {
		CALL_FAULT((tell(), fault(nowhere)), "fault", FAULT_LINE);
	} else if (strcmp(how, "overflow") == 0) {
		CALL_FAULT((tell(), overflow(malloc(8), 8)), "overflow", OVERFLOW_LINE);
	} else if (strcmp(how, "trap") == 0) {
		CALL_FAULT((tell(), trap()), "trap", TRAP_LINE);
	} else {
		CALL((tell(), pause()));
	}
}

INLINE void inner(const char *how)
{
	CALL(deep(how));
}

INLINE void outer(const char *how)
{
	CALL(inner(how));
}

void lib_run(const char *how)
{
	CALL(outer(how));
}
