/* SPDX-License-Identifier: MIT */
/* Functions that are called by others, and one that the C library calls. */
#include <stdio.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline))

static volatile int sink;

static NOINLINE int last(int n)
{
	sink = n;
	return n + 1;
}

static NOINLINE int middle(int n)
{
	return last(n) + sink;
}

static NOINLINE int first(int n)
{
	return middle(n) + sink;
}

static int compare(const void *a, const void *b)
{
	return last(*(const int *)a - *(const int *)b) - 1;
}

int main(void)
{
	int two[2] = { 2, 1 };

	sink = first(1);
	qsort(two, 2, sizeof *two, compare);
	puts(two[0] == 1 ? "done" : "wrong");
	return 0;
}
