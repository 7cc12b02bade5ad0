/* SPDX-License-Identifier: MIT */
/* A stack that is known: main, outer, inner, which never returns. Prints a line when it is there. */
#include <stdio.h>

static volatile unsigned long rounds;

__attribute__((noinline)) static void inner(int n)
{
	(void)puts("there");
	(void)fflush(stdout);
	for (;;)
		rounds += (unsigned long)n;
}

__attribute__((noinline)) void outer(int n)
{
	inner(n + 1);
	rounds = 0;
}

int main(void)
{
	outer(3);
	return 0;
}
