/* SPDX-License-Identifier: MIT */
/*
 * woken ROUNDS US [busy]: a thread, "server", sleeps until the first one has slept US microseconds
 * and asks it, ROUNDS times; another one, "slow", sleeps until the end. With "busy" all of them
 * have one processor, which a fourth thread uses all the time.
 *
 * Prints for the threads "main", "server", "slow": the name, TID, ns in sleep, ns in waits for
 * another thread, both by the monotonic clock, and ns that the scheduler says it waited for a
 * processor.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static sem_t asked, answered, over;
static int rounds;

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t wait_for(sem_t *what)
{
	const uint64_t begin = now_ns();

	while (sem_wait(what))
		;
	return now_ns() - begin;
}

static void report(const char *name, uint64_t slept, uint64_t waited)
{
	unsigned long long ran;
	unsigned long long queued = 0;
	FILE *f = fopen("/proc/thread-self/schedstat", "r");

	if (!f || fscanf(f, "%llu %llu", &ran, &queued) != 2)
		queued = 0;
	printf("%s %d %llu %llu %llu\n", name, (int)gettid(), (unsigned long long)slept,
	       (unsigned long long)waited, queued);
	if (f)
		fclose(f);
}

static void *serve(void *unused)
{
	uint64_t waited = 0;

	(void)unused;
	(void)pthread_setname_np(pthread_self(), "server");
	for (int i = 0; i < rounds; i++) {
		waited += wait_for(&asked);
		(void)sem_post(&answered);
	}
	report("server", 0, waited);
	return NULL;
}

static void *be_slow(void *unused)
{
	uint64_t waited;

	(void)unused;
	(void)pthread_setname_np(pthread_self(), "slow");
	waited = wait_for(&over);
	report("slow", 0, waited);
	return NULL;
}

static void *be_busy(void *unused)
{
	for (volatile int i = 0;; i++)
		;
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t server;
	pthread_t slow;
	pthread_t busy;
	uint64_t slept = 0;
	uint64_t waited = 0;
	cpu_set_t one;

	rounds = atoi(argv[1]);
	if (argc > 3) {
		CPU_ZERO(&one);
		CPU_SET(sched_getcpu(), &one);
		(void)sched_setaffinity(0, sizeof one, &one);
		/* A thread that is woken waits then until the slice of the running one is over
		 * (sched(7)). */
		(void)sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){ 0 });
	}
	if (pthread_create(&server, NULL, serve, NULL) ||
	    pthread_create(&slow, NULL, be_slow, NULL) ||
	    (argc > 3 && pthread_create(&busy, NULL, be_busy, NULL)))
		return 1;
	for (int i = 0; i < rounds; i++) {
		const uint64_t begin = now_ns();

		usleep((unsigned)atoi(argv[2]));
		slept += now_ns() - begin;
		(void)sem_post(&asked);
		waited += wait_for(&answered);
	}
	(void)sem_post(&over);
	(void)pthread_join(server, NULL);
	(void)pthread_join(slow, NULL);
	report("main", slept, waited);
	return 0;
}
