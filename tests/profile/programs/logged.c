/* SPDX-License-Identifier: MIT */
/*
 * logged SECONDS: calls functions at random, for so much processor time, and notes each entry and exit with the time of the
 * monotonic clock. Prints them at the end, as "TIME DEPTH" lines with the function's letter before
 * an entry and "-" before an exit.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock_of.h"

enum { MAX_LINES = 2000000, MAX_DEPTH = 12 };

struct line {
	uint64_t ns;
	char what;
};

static struct line lines[MAX_LINES];
static size_t n_lines;
static uint64_t end;
static uint32_t seed = 1;
volatile uint64_t sink;

static uint64_t now(void)
{
	return clock_of(CLOCK_MONOTONIC);
}

static uint32_t next(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 17;
	return seed ^= seed << 5;
}

static inline __attribute__((always_inline)) void note(char what)
{
	if (n_lines < MAX_LINES)
		lines[n_lines++] = (struct line){ now(), what };
}

static void call(int depth);

#define FUNCTION(name)                                                         \
	static __attribute__((noinline)) void function_##name(int depth)       \
	{                                                                      \
		note(#name[0]);                                                \
		for (uint32_t i = next() % 300000; i; i--)                      \
			sink += i;                                             \
		for (uint32_t i = next() % 3; i && depth < MAX_DEPTH; i--)     \
			call(depth + 1);                                       \
		for (uint32_t i = next() % 300000; i; i--)                      \
			sink += i;                                             \
		note('-');                                                     \
		sink++;                                                        \
	}

FUNCTION(a)
FUNCTION(b)
FUNCTION(c)
FUNCTION(d)

static __attribute__((noinline)) void call(int depth)
{
	static void (*const functions[])(int depth) = { function_a, function_b, function_c,
							function_d };

	functions[next() % 4](depth);
	sink++;
}

int main(int argc, char **argv)
{
	/* Pages that are first written to would take the time between a clock and a call. */
	memset(lines, 1, sizeof lines);
	end = clock_of(CLOCK_PROCESS_CPUTIME_ID) +
	      (uint64_t)(argc > 1 ? atof(argv[1]) * 1e9 : 1e9);
	while (clock_of(CLOCK_PROCESS_CPUTIME_ID) < end)
		call(0);
	for (size_t i = 0; i < n_lines; i++)
		printf("%c %llu\n", lines[i].what, (unsigned long long)lines[i].ns);
	return 0;
}
