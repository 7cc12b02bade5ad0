/* SPDX-License-Identifier: MIT */
/* What stands for code that a program has compiled itself: tests know its lines. */
int twice(int x)
{
	return x * 2;
}

static inline __attribute__((always_inline)) int inner(int x)
{
	return x * 3 + 1;
}

int outer(int x)
{
	x ^= 5;
	x = inner(x); /* line 16 */
	return x;
}
