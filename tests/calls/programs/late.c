/* SPDX-License-Identifier: MIT */
/*
 * Has a malloc() of its own, which is recorded as all else, and calls functions when threads and
 * the program end. Prints how often each was entered.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 20, ROUNDS = 500 };

#define KEPT __attribute__((noinline, noclone))

static char room[1 << 26] __attribute__((aligned(16)));
static _Atomic size_t used;
static _Atomic int n_mallocs, n_grown, n_given_back;
static pthread_key_t key;

KEPT void *malloc(size_t size)
{
	const size_t at = (used += (size + 31) & ~(size_t)15) - ((size + 31) & ~(size_t)15);

	n_mallocs++;
	if (at + size + 16 > sizeof room) {
		errno = ENOMEM;
		return NULL;
	}
	memcpy(room + at, &size, sizeof size);
	return room + at + 16;
}

KEPT void free(void *p)
{
	(void)p;
}

KEPT void *calloc(size_t n, size_t size)
{
	return malloc(n * size); /* never used twice, so zero */
}

KEPT void *realloc(void *p, size_t size)
{
	size_t was = 0;
	void *more = malloc(size);

	n_grown++;
	if (p)
		memcpy(&was, (char *)p - 16, sizeof was);
	if (p && more)
		memcpy(more, p, was < size ? was : size);
	return more;
}

/* When a thread ends: its keys' values are given back. */
KEPT static void give_back(void *p)
{
	n_given_back++;
	free(malloc(10));
	free(p);
}

static void *work(void *data)
{
	pthread_setspecific(key, malloc(100));
	for (int i = 0; i < ROUNDS; i++) {
		void *p = malloc(16);

		p = realloc(p, 32);
		free(p);
	}
	return data;
}

KEPT static void at_exit(void)
{
	free(malloc(1));
}

__attribute__((destructor)) static void at_end(void)
{
	char line[100];
	int n;

	free(malloc(1));
	n = snprintf(line, sizeof line, "malloc %d realloc %d give_back %d at_exit 1 at_end 1\n",
		     n_mallocs, n_grown, n_given_back);
	_exit(write(1, line, (size_t)n) != n);
}

int main(void)
{
	pthread_t threads[THREADS];

	pthread_key_create(&key, give_back);
	atexit(at_exit);
	for (int i = 0; i < THREADS; i++)
		pthread_create(threads + i, NULL, work, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
