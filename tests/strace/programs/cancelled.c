/* SPDX-License-Identifier: MIT */
/*
 * cancelled N: cancels N threads, which wait in calls or make many. Each has a variable whose
 * cleanup runs only if the stack is unwound (built with -fexceptions). Prints how many cleanups
 * have run.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static _Atomic int n_cleanups;
static _Atomic int has_begun;
static int ends[2];
static int null;

static void clean(const int *unused)
{
	(void)unused;
	n_cleanups++;
}

static void *waits(void *unused)
{
	__attribute__((cleanup(clean))) int local = 0;
	char c;

	has_begun = 1;
	while (read(ends[0], &c, 1) >= 0)
		local++;
	return unused;
}

static void *writes(void *unused)
{
	__attribute__((cleanup(clean))) int local = 0;

	has_begun = 1;
	while (write(null, "", 1) == 1)
		local++;
	return unused;
}

int main(int argc, char **argv)
{
	const int n = argc > 1 ? atoi(argv[1]) : 100;
	int n_cancelled = 0;

	null = open("/dev/null", O_WRONLY);
	if (null < 0 || pipe(ends))
		return 1;
	for (int i = 0; i < n; i++) {
		pthread_t thread;
		void *result;

		has_begun = 0;
		if (pthread_create(&thread, NULL, i % 2 ? writes : waits, NULL))
			return 2;
		while (!has_begun)
			sched_yield();
		if (i % 4 > 1)
			usleep((unsigned)i % 50);
		pthread_cancel(thread);
		pthread_join(thread, &result);
		n_cancelled += result == PTHREAD_CANCELED;
	}
	printf("%d cancelled, %d cleaned up\n", n_cancelled, n_cleanups);
	return 3;
}
