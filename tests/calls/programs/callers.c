/* SPDX-License-Identifier: MIT */
/* Functions that are called by others, and one that the C library calls; with an argument, system
 * calls. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static NOINLINE int near_call(void)
{
	return (int)getppid() + sink;
}

static NOINLINE int far_call(int n)
{
	char room[8000];

	memset(room, n, sizeof room);
	/* Compilers may not leave it out. */
	__asm__ volatile("" : : "r"(room) : "memory");
	return near_call() + room[sink & 1];
}

int main(int argc, char **argv)
{
	int two[2] = { 2, 1 };

	(void)argv;
	if (argc > 1)
		sink = near_call() + far_call(argc);
	sink = first(1);
	qsort(two, 2, sizeof *two, compare);
	puts(two[0] == 1 ? "done" : "wrong");
	return 0;
}
