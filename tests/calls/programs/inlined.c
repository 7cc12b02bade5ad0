/* SPDX-License-Identifier: MIT */
/*
 * inlined LOG: built with -finstrument-functions, writes what is entered (+) and left (-), in order. Functions called in_
 * are inlined into others: they are told of, too.
 */
#include <stdio.h>
#include <stdlib.h>

#define UNSEEN __attribute__((no_instrument_function))
#define KEPT   __attribute__((noinline, noclone))
#ifdef __clang__
#undef KEPT
#define KEPT __attribute__((noinline))
#endif

static struct {
	void *function;
	int is_exit;
} told[10000];
static int n_told;

UNSEEN KEPT void __cyg_profile_func_enter(void *fn, void *from);
UNSEEN KEPT void __cyg_profile_func_exit(void *fn, void *from);

void __cyg_profile_func_enter(void *fn, void *from)
{
	(void)from;
	told[n_told].function = fn;
	told[n_told++].is_exit = 0;
}

void __cyg_profile_func_exit(void *fn, void *from)
{
	(void)from;
	told[n_told].function = fn;
	told[n_told++].is_exit = 1;
}

static inline __attribute__((always_inline)) int in_small(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}

static inline __attribute__((always_inline)) int in_larger(int n)
{
	return in_small(n) + in_small(n + 1);
}

KEPT int leaf(int n)
{
	__asm__ volatile("" : "+r"(n));
	return in_small(n);
}

/* Ends with the exit of what is inlined, and with its own. */
KEPT void ends(int *n)
{
	*n = in_larger(*n);
}

KEPT int recursive(int n)
{
	return n ? recursive(n - 1) + leaf(n) : in_larger(n);
}

/* Frames that need a frame pointer. */
KEPT int sized(int n)
{
	volatile char bytes[n + 1];

	bytes[n] = (char)n;
	ends(&n);
	return n + bytes[0] * 0;
}

KEPT int several(int n)
{
	if (n == 1)
		return leaf(n);
	if (n == 2)
		return in_larger(n);
	ends(&n);
	return n;
}

/* Many arguments, some on the stack. */
KEPT long many(long a, long b, long c, long d, long e, long f, long g, long h)
{
	return a + b * c - d + e * f + g - h + leaf((int)h);
}

UNSEEN KEPT static void write_log(const char *path, const void *start)
{
	FILE *f = fopen(path, "w");

	for (int i = 0; i < n_told; i++)
		(void)fprintf(f, "%c %ld\n", told[i].is_exit ? '-' : '+', (long)((char *)told[i].function - (const char *)start));
	(void)fclose(f);
}

KEPT int work(int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++)
		sum += recursive(i) + sized(i) + several(i) + (int)many(1, 2, 3, 4, 5, 6, 7, i);
	return sum;
}

UNSEEN int main(int argc, char **argv)
{
	printf("%d\n", work(4));
	if (argc > 1)
		write_log(argv[1], (const void *)work);
	return 0;
}
