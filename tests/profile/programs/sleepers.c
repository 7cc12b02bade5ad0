/* SPDX-License-Identifier: MIT */
/* sleepers THREADS: so many threads wait for ever in `waits`; says "ready". */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static sem_t semaphore;
static volatile int woken;

__attribute__((noinline)) void waits(void)
{
	sem_wait(&semaphore);
	woken++;
}

static void *run(void *data)
{
	waits();
	return data;
}

int main(int argc, char **argv)
{
	const int n = argc > 1 ? atoi(argv[1]) : 1;
	pthread_attr_t attributes;
	pthread_t thread;

	sem_init(&semaphore, 0, 0);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 65536);
	for (int i = 0; i < n; i++)
		if (pthread_create(&thread, &attributes, run, NULL))
			return 1;
	puts("ready");
	(void)fflush(stdout);
	for (;;)
		pause();
}
