/* SPDX-License-Identifier: MIT */
/* threads N CALLS ROUNDS: N threads at once, each with so many calls, so many times. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int n_calls;

__attribute__((noinline)) void counted(void)
{
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void other(void)
{
	__asm__ volatile("" ::: "memory");
}

static void *run(void *data)
{
	pthread_setname_np(pthread_self(), data ? "odd" : "even");
	for (int i = 0; i < n_calls; i += 2) {
		counted();
		other();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const int n = argc > 1 ? atoi(argv[1]) : 1;
	static pthread_t threads[1000];

	n_calls = atoi(argv[2]);
	for (int round = 0; round < atoi(argv[3]); round++) {
		for (int i = 0; i < n; i++)
			pthread_create(&threads[i], NULL, run, i % 2 ? (void *)threads : NULL);
		for (int i = 0; i < n; i++)
			pthread_join(threads[i], NULL);
	}
	puts("done");
	return 0;
}
