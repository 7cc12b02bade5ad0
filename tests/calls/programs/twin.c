/* SPDX-License-Identifier: MIT */
/*
 * Calls of all kinds. Built with -finstrument-functions and TWIN, it writes its own log: a line for each function that is
 * entered, with the thread's number of its own. What it prints is the same in both builds.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEPT __attribute__((noinline, noclone))

static __thread int number; /* of the thread: 0 is main's */

#ifdef TWIN
#define UNSEEN __attribute__((no_instrument_function))
#else
#define UNSEEN __attribute__((patchable_function_entry(0, 0)))
#endif

#ifdef TWIN
struct entered {
	const void *function;
	int thread;
};
static struct entered entered[400000];
static _Atomic int n_entered;

UNSEEN KEPT void __cyg_profile_func_enter(void *fn, void *from);
UNSEEN KEPT void __cyg_profile_func_exit(void *fn, void *from);

void __cyg_profile_func_enter(void *fn, void *from)
{
	(void)from;
	entered[n_entered++] = (struct entered){ fn, number };
}

void __cyg_profile_func_exit(void *fn, void *from)
{
	(void)fn;
	(void)from;
}

UNSEEN static void write_log(const char *path, const void *main_address)
{
	FILE *f = fopen(path, "w");

	for (int i = 0; i < n_entered; i++)
		(void)fprintf(f, "%d %ld\n", entered[i].thread,
			      (long)((const char *)entered[i].function - (const char *)main_address));
	(void)fclose(f);
}
#endif

struct big {
	long words[9];
};

KEPT static long leaf(long n)
{
	__asm__ volatile("" : "+r"(n));
	return n * 3;
}

KEPT static struct big make(long n)
{
	struct big b;

	for (int i = 0; i < 9; i++)
		b.words[i] = leaf(n + i);
	return b;
}

KEPT static double sum(int n, ...)
{
	double total = 0;
	va_list list;

	va_start(list, n);
	for (int i = 0; i < n; i++)
		total += va_arg(list, double);
	va_end(list);
	return total;
}

KEPT static long six(long a, long b, long c, long d, long e, long f)
{
	return leaf(a) + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f;
}

KEPT static long seven(long a, long b, long c, long d, long e, long f)
{
	return six(f, e, d, c, b, a) + 7;
}

static long (*volatile chosen)(long, long, long, long, long, long) = six;

/* Ends by a jump through a register, with six arguments. */
KEPT static long jump(long n)
{
	return chosen(n, n + 1, n + 2, n + 3, n + 4, n + 5);
}

KEPT static long fib(int n)
{
	long a;
	long b;

	if (n < 2)
		return leaf(n);
	a = fib(n - 1);
	b = fib(n - 2);
	/* No loop is made of it, which the twin could not have. */
	__asm__ volatile("" : "+r"(a), "+r"(b));
	return a + b;
}

KEPT static int compare(const void *a, const void *b)
{
	const int x = *(const int *)a;
	const int y = *(const int *)b;

	return (x > y) - (x < y);
}

static jmp_buf back;

KEPT static void dig(int n)
{
	if (!n)
		longjmp(back, 1);
	dig(n - 1);
	/* No jump is made of it. */
	__asm__ volatile("");
}

KEPT static __int128 wide(__int128 n, long double x)
{
	return n * 7 + (long)x + leaf(3);
}

KEPT static long work(int seed)
{
	int items[50];
	long total = 0;

	for (int i = 0; i < 50; i++)
		items[i] = (i * 7919 + seed) % 101;
	qsort(items, 50, sizeof *items, compare);
	for (int i = 0; i < 50; i++)
		total += items[i] * i;
	total += make(seed).words[8];
	total += (long)(sum(4, 1.5, 2.5, 3.25, seed * 0.5) * 100);
	chosen = seed % 2 ? seven : six;
	total += jump(seed);
	total += fib(10 + seed % 3);
	if (!setjmp(back))
		dig(seed % 5);
	total += (long)(wide(seed, 2.75L) >> 1);
	return total;
}

KEPT static void *run(void *data)
{
	long *result = data;

	number = (int)result[0];
	for (int i = 0; i < 5; i++)
		result[1] += leaf(i) + fib(5);
	return NULL;
}

int main(int argc, char **argv)
{
	long results[3][2] = { { 1 }, { 2 }, { 3 } };
	pthread_t threads[3];
	long total = 0;

	for (int i = 0; i < 20; i++)
		total += work(i);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, run, results[i]);
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], NULL);
		total += results[i][1];
	}
	printf("%ld\n", total);
#ifdef TWIN
	write_log(argv[argc - 1], (const void *)main);
#else
	(void)argc;
	(void)argv;
#endif
	return 0;
}
