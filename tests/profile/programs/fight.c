/* SPDX-License-Identifier: MIT */
/*
 * fight THREADS TURNS MICROSECONDS [RUN]: threads take one mutex in turn, and sleep while they hold
 * it; before each turn they run for so many microseconds.
 * Prints of each turn "turn TID ASKED TAKEN LEFT", times of the monotonic clock in ns; of each
 * thread "thread TID BEGIN END PROCESSOR BORN", its processor time, and when it began to rest.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "clock_of.h"

#define MAX_THREADS 16
#define MAX_TURNS   4096

struct turn {
	uint64_t asked;
	uint64_t taken;
	uint64_t left;
};

static struct fighter {
	struct turn turns[MAX_TURNS];
	uint64_t begin;
	uint64_t end;
	uint64_t ran;
	uint64_t born;
	int tid;
} fighters[MAX_THREADS];

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static int n_turns;
static long microseconds;
static long running;

__attribute__((noinline)) void hold(void)
{
	const struct timespec t = { microseconds / 1000000, microseconds % 1000000 * 1000 };

	nanosleep(&t, NULL);
}

/* Runs, by the thread's own clock. */
static void run(void)
{
	const uint64_t end = clock_of(CLOCK_THREAD_CPUTIME_ID) + (uint64_t)running * 1000;

	while (clock_of(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

static void rest(void)
{
	const struct timespec t = { 0, 200000000 };

	nanosleep(&t, NULL);
}

static void *fight(void *data)
{
	struct fighter *f = data;

	f->tid = gettid();
	f->born = clock_of(CLOCK_MONOTONIC);
	pthread_barrier_wait(&barrier);
	/* Short waits are told together: those before and after are not among these. */
	rest();
	f->ran = clock_of(CLOCK_THREAD_CPUTIME_ID);
	f->begin = clock_of(CLOCK_MONOTONIC);
	for (int i = 0; i < n_turns; i++) {
		struct turn *t = &f->turns[i];

		if (running)
			run();
		t->asked = clock_of(CLOCK_MONOTONIC);
		pthread_mutex_lock(&mutex);
		t->taken = clock_of(CLOCK_MONOTONIC);
		hold();
		t->left = clock_of(CLOCK_MONOTONIC);
		pthread_mutex_unlock(&mutex);
	}
	f->end = clock_of(CLOCK_MONOTONIC);
	f->ran = clock_of(CLOCK_THREAD_CPUTIME_ID) - f->ran;
	rest();
	/* All end together: none is waited for in place of the mutex. */
	pthread_barrier_wait(&barrier);
	return NULL;
}

int main(int argc, char **argv)
{
	const int n = argc > 3 ? atoi(argv[1]) : 0;
	pthread_t threads[MAX_THREADS];

	if (n < 1 || n > MAX_THREADS)
		return 2;
	n_turns = atoi(argv[2]);
	microseconds = atol(argv[3]);
	running = argc > 4 ? atol(argv[4]) : 0;
	if (n_turns < 1 || n_turns > MAX_TURNS)
		return 2;
	pthread_barrier_init(&barrier, NULL, (unsigned)n);
	for (int i = 0; i < n; i++)
		pthread_create(&threads[i], NULL, fight, &fighters[i]);
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < n; i++) {
		const struct fighter *f = &fighters[i];

		for (int k = 0; k < n_turns; k++)
			printf("turn %d %llu %llu %llu\n", f->tid,
			       (unsigned long long)f->turns[k].asked,
			       (unsigned long long)f->turns[k].taken,
			       (unsigned long long)f->turns[k].left);
		printf("thread %d %llu %llu %llu %llu\n", f->tid, (unsigned long long)f->begin,
		       (unsigned long long)f->end, (unsigned long long)f->ran,
		       (unsigned long long)f->born);
	}
	return 0;
}
