/* SPDX-License-Identifier: MIT */
/* Inlined calls, static functions, a moved cold part, aliases, data of every kind. */
#include <stdio.h>
#include <stdlib.h>

#include "mixed.h"

int global = 3;
static int counter;
const char table[] = "abc";
int common;
int weak_variable __attribute__((weak)) = 5;

static int helper(int x)
{
	static int calls;

	calls++;
	if (x > 3) {
		for (int i = 0; i < x; i++)
			counter += square(i);
	}
	return counter + calls;
}

static void __attribute__((noinline)) rare(int x)
{
	if (x > 100)
		abort();
	fprintf(stderr, "%d\n", cube(x));
}

int __attribute__((noinline)) target(int x)
{
	return square(x) + helper(x);
}

int aliased(int x) __attribute__((alias("target")));
int renamed(int x) __asm__("another_name");

int __attribute__((noinline)) renamed(int x)
{
	return cube(x) > 5 && x < 9 ? square(x) : helper(x + 1);
}

#ifdef NO_MAIN
int entry(int argc)
#else
int main(int argc, char **argv)
#endif
{
#ifndef NO_MAIN
	if (!argv[0])
		return 1;
#endif
	if (__builtin_expect(argc > 5, 0))
		rare(argc);
	printf("%d %s %d %d\n", helper(argc), table, aliased(argc), renamed(argc));
	return global + common + weak_variable;
}
