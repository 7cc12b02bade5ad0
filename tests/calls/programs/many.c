/* SPDX-License-Identifier: MIT */
/* many THREADS CALLS: so many threads are there at once, then each calls counted() so often. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_barrier_t all;
static int n_calls;

__attribute__((noinline)) void counted(void)
{
	__asm__ volatile("" ::: "memory");
}

static void *run(void *data)
{
	pthread_barrier_wait(&all);
	for (int i = 0; i < n_calls; i++)
		counted();
	return data;
}

int main(int argc, char **argv)
{
	const int n = argc > 2 ? atoi(argv[1]) : 1;
	pthread_t *threads = calloc((size_t)n, sizeof *threads);
	pthread_attr_t a;

	n_calls = argc > 2 ? atoi(argv[2]) : 1;
	pthread_barrier_init(&all, NULL, (unsigned)n);
	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 65536);
	for (int i = 0; i < n; i++)
		if (!threads || pthread_create(&threads[i], &a, run, NULL))
			return 1;
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	puts("done");
	return 0;
}
