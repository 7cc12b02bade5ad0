/* SPDX-License-Identifier: MIT */
/*
 * shares THREADS SECONDS: each of the threads spends processor time in four functions, as their
 * own clocks measure it; the time of thread number i is i times SECONDS. Prints "TID FUNCTION NS"
 * lines; then "process SWITCHES BEFORE AFTER": how often its threads have left a processor, and the
 * clock of the process in main(), in nanoseconds.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "clock_of.h"

volatile uint64_t sink;
static double seconds;

static __attribute__((noinline)) void work(void)
{
	for (int i = 0; i < 20000; i++)
		sink += (uint64_t)i;
}

#define FUNCTION(name)                                                     \
	static __attribute__((noinline)) uint64_t name(uint64_t ns)        \
	{                                                                  \
		const uint64_t begin = clock_of(CLOCK_THREAD_CPUTIME_ID);  \
		uint64_t now;                                              \
                                                                           \
		do {                                                       \
			work();                                            \
			now = clock_of(CLOCK_THREAD_CPUTIME_ID);           \
		} while (now - begin < ns);                                \
		sink++;                                                    \
		return now - begin;                                        \
	}

FUNCTION(tenth)
FUNCTION(fifth)
FUNCTION(quarter)
FUNCTION(rest)

static void *run(void *data)
{
	static uint64_t (*const functions[])(uint64_t) = { tenth, fifth, quarter, rest };
	static const char *const names[] = { "tenth", "fifth", "quarter", "rest" };
	static const double parts[] = { 0.10, 0.20, 0.25, 0.45 };
	const double times = *(const int *)data;
	uint64_t ns[4] = { 0 };

	/* Turns of some milliseconds, so that no function has a time of its own. */
	for (int turn = 0; turn < 20; turn++)
		for (int i = 0; i < 4; i++)
			ns[i] += functions[i]((uint64_t)(parts[i] * times * seconds * 1e9 / 20));
	for (int i = 0; i < 4; i++)
		printf("%d %s %llu\n", (int)gettid(), names[i], (unsigned long long)ns[i]);
	return NULL;
}

int main(int argc, char **argv)
{
	const uint64_t before = clock_of(CLOCK_PROCESS_CPUTIME_ID);
	const int n = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t threads[16];
	struct rusage usage;
	int numbers[16];

	seconds = argc > 2 ? atof(argv[2]) : 1;
	if (argc > 3)
		(void)getchar();
	for (int i = 0; i < n; i++) {
		numbers[i] = i + 1;
		if (n == 1)
			run(&numbers[i]);
		else
			pthread_create(&threads[i], NULL, run, &numbers[i]);
	}
	for (int i = 0; n > 1 && i < n; i++)
		pthread_join(threads[i], NULL);
	getrusage(RUSAGE_SELF, &usage);
	printf("process %ld %llu %llu\n", usage.ru_nvcsw + usage.ru_nivcsw,
	       (unsigned long long)before,
	       (unsigned long long)clock_of(CLOCK_PROCESS_CPUTIME_ID));
	return 0;
}
