/* SPDX-License-Identifier: MIT */
/* stacks THREADS DEPTH [busy]: threads that sleep, or run, that deep; says "ready" when they are
 * there. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static sem_t ready;
static int depth;
static volatile int is_busy;

static int wait_here(void)
{
	int n = 0;

	sem_post(&ready);
	while (is_busy)
		n++;
	pause();
	return n;
}

/* Ten functions that call each other in turn: no tool may print them as one that calls itself. */
#define DESCEND(name, next)                                         \
	static int next(int left);                                  \
	__attribute__((noinline)) static int name(int left)         \
	{                                                           \
		return left > 1 ? next(left - 1) + 1 : wait_here(); \
	}

DESCEND(descend, step_1)
DESCEND(step_1, step_2)
DESCEND(step_2, step_3)
DESCEND(step_3, step_4)
DESCEND(step_4, step_5)
DESCEND(step_5, step_6)
DESCEND(step_6, step_7)
DESCEND(step_7, step_8)
DESCEND(step_8, step_9)
DESCEND(step_9, descend)

static void *run(void *data)
{
	(void)data;
	(void)descend(depth);
	return NULL;
}

int main(int argc, char **argv)
{
	const int n = argc > 1 ? atoi(argv[1]) : 1;
	pthread_attr_t attr;
	pthread_t thread;

	depth = argc > 2 ? atoi(argv[2]) : 0;
	is_busy = argc > 3 && strcmp(argv[3], "busy") == 0;
	sem_init(&ready, 0, 0);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 128 * 1024);
	for (int i = 1; i < n; i++)
		if (pthread_create(&thread, &attr, run, NULL))
			return 1;
	for (int i = 1; i < n; i++)
		sem_wait(&ready);
	puts("ready");
	fflush(stdout);
	return descend(depth);
}
