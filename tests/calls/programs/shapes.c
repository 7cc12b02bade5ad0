/* SPDX-License-Identifier: MIT */
/* The same few calls in each shape of a site. */
#include <stdio.h>

#define KEPT __attribute__((noinline, noclone))

KEPT int leaf(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}

KEPT int middle(int n)
{
	return leaf(n) + leaf(n + 1) * 2;
}

KEPT int top(int n)
{
	volatile char room[200];

	room[n] = (char)n;
	return middle(n) + room[n] + middle(2 * n);
}

int main(void)
{
	printf("%d\n", top(3) + leaf(4));
	return 0;
}
