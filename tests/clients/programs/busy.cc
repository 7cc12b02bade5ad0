// SPDX-License-Identifier: MIT
// Spends some tenths of a second in inlined functions, for a profiler.
static inline unsigned mix(unsigned x)
{
	x ^= x << 13;
	x ^= x >> 17;
	return x ^ (x << 5);
}

__attribute__((noinline)) unsigned spin(unsigned n)
{
	unsigned x = 1;

	for (unsigned i = 0; i < n; i++)
		x = mix(x + i);
	return x;
}

__attribute__((noinline)) unsigned twice(unsigned n)
{
	return spin(n) + spin(n / 2);
}

int main()
{
	return twice(150000000u) == 1;
}
