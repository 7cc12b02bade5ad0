/* SPDX-License-Identifier: MIT */
/*
 * brief TURNS MICROSECONDS: threads that wait so many times, each in a system call of its own, in a
 * function of that name.
 * Prints of each wait "NAME TID BEGIN END", times of the monotonic clock in ns.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "clock_of.h"

#define MAX_TURNS 4096
#define N         5

/* A function whose call of another one is not its end: it has a frame. */
#define NAMED __attribute__((noinline, optimize("no-optimize-sibling-calls")))

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static long microseconds;
static int n_turns;
static int timer;

static struct timespec length(void)
{
	return (struct timespec){ microseconds / 1000000, microseconds % 1000000 * 1000 };
}

NAMED void sleeps(void)
{
	const struct timespec t = length();

	nanosleep(&t, NULL);
}

NAMED void polls(void)
{
	const struct timespec t = length();

	ppoll(NULL, 0, &t, NULL);
}

NAMED void reads(void)
{
	const struct itimerspec t = { .it_value = length() };
	uint64_t n;

	timerfd_settime(timer, 0, &t, NULL);
	(void)!read(timer, &n, sizeof n);
}

NAMED void counts(void)
{
	const uint64_t end = clock_of(CLOCK_REALTIME) + (uint64_t)microseconds * 1000;
	const struct timespec t = { (time_t)(end / 1000000000), (long)(end % 1000000000) };

	pthread_mutex_lock(&mutex);
	pthread_cond_timedwait(&never, &mutex, &t);
	pthread_mutex_unlock(&mutex);
}

/*
 * Waits in a system call of its own: where its frame ends is in a register, which no other function
 * has saved.
 */
NAMED void grows(void)
{
	const struct timespec t = length();
	volatile char bytes[microseconds % 7 + 1];

	bytes[0] = 1;
#ifdef __x86_64__
	{
		long result = SYS_nanosleep;

		__asm__ volatile("syscall"
				 : "+a"(result)
				 : "D"(&t), "S"(NULL)
				 : "rcx", "r11", "memory");
	}
#else
	syscall(SYS_nanosleep, &t, NULL);
#endif
	bytes[0] = 2;
}

static struct waiter {
	const char *name;
	void (*call)(void);
	int tid;
	uint64_t times[MAX_TURNS][2];
} waiters[N] = {
	{ .name = "sleeps", .call = sleeps }, { .name = "polls", .call = polls },
	{ .name = "reads", .call = reads },   { .name = "counts", .call = counts },
	{ .name = "grows", .call = grows },
};

static void *run(void *data)
{
	struct waiter *w = data;

	w->tid = gettid();
	for (int i = 0; i < n_turns; i++) {
		w->times[i][0] = clock_of(CLOCK_MONOTONIC);
		w->call();
		w->times[i][1] = clock_of(CLOCK_MONOTONIC);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[N];

	n_turns = argc > 2 ? atoi(argv[1]) : 0;
	microseconds = argc > 2 ? atol(argv[2]) : 0;
	timer = timerfd_create(CLOCK_MONOTONIC, 0);
	if (n_turns < 1 || n_turns > MAX_TURNS || microseconds < 1 || timer < 0)
		return 2;
	for (int i = 0; i < N; i++)
		pthread_create(&threads[i], NULL, run, &waiters[i]);
	for (int i = 0; i < N; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < N; i++)
		for (int k = 0; k < n_turns; k++)
			printf("%s %d %llu %llu\n", waiters[i].name, waiters[i].tid,
			       (unsigned long long)waiters[i].times[k][0],
			       (unsigned long long)waiters[i].times[k][1]);
	return 0;
}
