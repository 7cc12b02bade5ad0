/* SPDX-License-Identifier: MIT */
/* Calls a nested function (gcc) three times, which calls another function. */
#include <stdio.h>

__attribute__((noinline)) int leaf(int n)
{
	__asm__ volatile("");
	return n + 1;
}

int main(int argc, char **argv)
{
	int sum = argc;

	(void)argv;
	__attribute__((noinline)) int inner(int n)
	{
		__asm__ volatile("");
		sum += n;
		return leaf(sum) + 1;
	}

	for (int i = 0; i < 3; i++)
		sum += inner(i) > 0;
	printf("%d\n", sum);
	return 0;
}
