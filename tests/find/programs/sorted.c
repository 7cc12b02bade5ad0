/* SPDX-License-Identifier: MIT */
/* To be preloaded: a qsort() that ends the program when it is given no array, which C does not allow. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

static int call(const void *a, const void *b, void *function)
{
	return ((int (*)(const void *, const void *))function)(a, b);
}

void qsort(void *items, size_t n, size_t size, int (*compare)(const void *, const void *))
{
	/* The header says that it is never NULL, which a compiler may rely on. */
	void *volatile given = items;

	if (!given) {
		fputs("qsort(NULL)\n", stderr);
		abort();
	}
	qsort_r(items, n, size, call, (void *)compare);
}
