/* SPDX-License-Identifier: MIT */
static inline int square(int x)
{
	return x * x;
}

static inline int cube(int x)
{
	return x * square(x);
}
