/* SPDX-License-Identifier: MIT */
/* A function that a resolver chooses, by a function that it calls, while the program is relocated. */
#include <stdio.h>

#define KEPT __attribute__((noinline, noclone))

KEPT static int one(int n)
{
	return n + 1;
}

KEPT static int other(int n)
{
	return n + 2;
}

KEPT static int decide(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n > 5;
}

typedef int step(int n);

KEPT static step *resolve(void)
{
	return decide(7) ? other : one;
}

int chosen(int n) __attribute__((ifunc("resolve")));

int main(void)
{
	printf("%d\n", chosen(3) + chosen(4));
	return 0;
}
