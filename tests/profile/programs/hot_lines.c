/* SPDX-License-Identifier: MIT */
/* Functions with loops, calls, jumps and inlined functions, for annotations. */
#include <stdio.h>
#include <stdlib.h>

static volatile unsigned sink;

static inline __attribute__((always_inline)) unsigned mix(unsigned x)
{
	x ^= x >> 13;
	x *= 0x5bd1e995;
	return x ^ x >> 15;
}

static inline __attribute__((always_inline)) unsigned twice(unsigned x)
{
	return mix(x) + mix(x + 1);
}

__attribute__((noinline, noclone)) unsigned leaf(unsigned x)
{
	sink += x;
	return sink ^ mix(x);
}

__attribute__((noinline, noclone)) unsigned work(unsigned n)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < n; i++) {
		if (i % 7 == 3)
			sum += i / (sum | 1);
		else if (i % 5 == 1)
			sum += twice(i ^ sum);
		else
			sum ^= leaf(i);
	}
	return sum;
}

__attribute__((noinline, noclone)) unsigned again(unsigned n)
{
	unsigned sum = work(n);

	if (n > 1)
		sum += again(n / 2) + again(n / 3);
	return sum;
}

__attribute__((noinline, noclone)) unsigned spin(unsigned n)
{
	unsigned x = 1;

	while (n--)
		x = x * 3 + n % (x | 1); /* hot */
	return x;
}

int main(int argc, char **argv)
{
	sink = again(100);
	if (argc > 1)
		sink += spin((unsigned)atoi(argv[1]));
	printf("%u\n", sink);
	return 0;
}
