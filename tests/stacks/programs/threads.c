/* SPDX-License-Identifier: MIT */
/*
 * threads N DEPTH: N threads that sleep DEPTH calls deep, the first of them in main(). Then it prints "ready". What
 * they sleep in takes turns: a read, a mutex, a condition, a semaphore, a sleep, a poll. With a third argument
 * "leave" the first thread ends; with "churn" it makes others, which end at once, for as long as it runs.
 */
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t other = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t semaphore;
static int pipes[2];
static int depth;
volatile int sink;

static void wait_in(long kind)
{
	struct pollfd p = { .fd = pipes[0], .events = POLLIN };
	char byte;

	switch (kind % 6) {
	case 0:
		sink = (int)read(pipes[0], &byte, 1);
		break;
	case 1:
		pthread_mutex_lock(&mutex);
		break;
	case 2:
		pthread_mutex_lock(&other);
		pthread_cond_wait(&condition, &other);
		break;
	case 3:
		sem_wait(&semaphore);
		break;
	case 4:
		sleep(100000);
		break;
	default:
		poll(&p, 1, -1);
	}
}

__attribute__((noinline)) int deeper(long kind, int n)
{
	if (n > 0)
		return deeper(kind, n - 1) + sink;
	wait_in(kind);
	return 0;
}

static void *run(void *kind)
{
	pthread_barrier_wait(&barrier);
	sink = deeper((long)kind, depth);
	return NULL;
}

static void *end_soon(void *unused)
{
	(void)unused;
	usleep(500);
	return NULL;
}

static void churn(void)
{
	pthread_t some[4];

	for (;;) {
		for (int i = 0; i < 4; i++)
			if (pthread_create(&some[i], NULL, end_soon, NULL))
				exit(1);
		for (int i = 0; i < 4; i++)
			pthread_join(some[i], NULL);
	}
}

int main(int argc, char **argv)
{
	const int n = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t thread;

	depth = argc > 2 ? atoi(argv[2]) : 0;
	if (pipe(pipes))
		return 1;
	pthread_mutex_lock(&mutex);
	sem_init(&semaphore, 0, 0);
	pthread_barrier_init(&barrier, NULL, (unsigned)n);
	for (long i = 1; i < n; i++)
		if (pthread_create(&thread, NULL, run, (void *)i))
			return 1;
	pthread_barrier_wait(&barrier);
	printf("ready\n");
	fflush(stdout);
	if (argc > 3 && strcmp(argv[3], "leave") == 0)
		pthread_exit(NULL);
	if (argc > 3 && strcmp(argv[3], "churn") == 0)
		churn();
	sink = deeper(0, depth);
	return 0;
}
