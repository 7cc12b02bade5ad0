/* SPDX-License-Identifier: MIT */
/* For lli: tells where its functions are, and stays in them. */
#include <stdio.h>

volatile long sink;

static inline __attribute__((always_inline)) long mix(long x)
{
	return x * 3 + 1;
}

__attribute__((noinline)) long hot_leaf(long x)
{
	for (int i = 0; i < 1000; i++)
		sink += mix(x) ^ i;
	return sink;
}

__attribute__((noinline)) long hot_outer(long n)
{
	long sum = 0;

	for (long i = 0; i < n; i++)
		sum += hot_leaf(i);
	return sum;
}

int main(void)
{
	printf("%p %p\n", (void *)hot_leaf, (void *)hot_outer);
	fflush(stdout);
	for (;;)
		hot_outer(100000);
}
