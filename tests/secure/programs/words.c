/* SPDX-License-Identifier: MIT */
/* Has the tracer inside. Prints its arguments, and whether the environment stands behind them as the kernel has put it. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern char **environ;

__attribute__((noinline)) void leaf(void)
{
	__asm__ volatile("");
}

int main(int argc, char **argv)
{
	int n = 0;

	while (argv[n])
		n++;
	leaf();
	printf("%d %d %s", argc, n, environ == argv + argc + 1 ? "behind" : "elsewhere");
	for (int i = 1; i < n; i++)
		printf(" %s", argv[i]);
	printf("\n");
	return 0;
}
