/* SPDX-License-Identifier: MIT */
/*
 * busy CALLS THREADS: calls that come faster than they are written, while threads begin, name themselves and end; then so many
 * threads at once.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { N_EACH = 100000, N_SHORT = 5 };

static pthread_barrier_t all;

__attribute__((noinline)) void busy(void)
{
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void counted(void)
{
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void seldom(void)
{
	__asm__ volatile("" ::: "memory");
}

static void *end_soon(void *data)
{
	usleep(3000);
	pthread_setname_np(pthread_self(), "short");
	for (int i = 0; i < N_SHORT; i++) {
		seldom();
		/* The name of a thread is read while it runs: on a busy machine somewhat later. */
		usleep(600000);
	}
	return data;
}

static void *call(void *data)
{
	pthread_barrier_wait(&all);
	for (int i = 0; i < N_EACH; i++)
		counted();
	return data;
}

int main(int argc, char **argv)
{
	const long n_calls = argc > 2 ? atol(argv[1]) : 1;
	const int n = argc > 2 ? atoi(argv[2]) : 1;
	pthread_t *threads = calloc((size_t)n, sizeof *threads);
	pthread_t thread;

	for (int k = 0; threads && k < 2; k++) {
		for (long i = 0; i < n_calls; i++)
			busy();
		if (!k && pthread_create(&thread, NULL, end_soon, NULL))
			return 1;
	}
	pthread_barrier_init(&all, NULL, (unsigned)n);
	for (int i = 0; i < n; i++)
		if (!threads || pthread_create(&threads[i], NULL, call, NULL))
			return 1;
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	pthread_join(thread, NULL);
	puts("done");
	return 0;
}
