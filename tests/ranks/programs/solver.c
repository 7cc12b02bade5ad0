/* SPDX-License-Identifier: MIT */
/* solver HUNG: one of many processes, which waits for the others or, if HUNG is 1, computes for ever. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile double sum;

__attribute__((noinline)) static void relax(int hung)
{
	puts("ready");
	fflush(stdout);
	while (hung)
		sum = sum * 0.5 + 1;
}

__attribute__((noinline)) static void barrier(void)
{
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	relax(argc > 1 && atoi(argv[1]));
	barrier();
	return 0;
}
