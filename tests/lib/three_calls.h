/* SPDX-License-Identifier: MIT */
/* Three functions that call each other a few times: what traces and hooks are tried on. */
#ifndef THREE_CALLS_H
#define THREE_CALLS_H

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

#endif
