/* SPDX-License-Identifier: MIT */
/* A timer's signal each 200 microseconds, whose handler calls a function; prints how often which was called. */
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>

static volatile long in_handler;
static long in_main;

__attribute__((noinline)) void called_by_handler(void)
{
	in_handler++;
}

__attribute__((noinline)) void called_by_main(void)
{
	in_main++;
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void also_called_by_main(void)
{
	__asm__ volatile("" ::: "memory");
}

static void handle(int number)
{
	(void)number;
	called_by_handler();
}

int main(void)
{
	const struct itimerval each = { { 0, 200 }, { 0, 200 } };
	const struct itimerval never = { { 0, 0 }, { 0, 0 } };

	signal(SIGALRM, handle);
	setitimer(ITIMER_REAL, &each, NULL);
	while (in_handler < 500) {
		for (int i = 0; i < 100; i++) {
			called_by_main();
			also_called_by_main();
		}
	}
	setitimer(ITIMER_REAL, &never, NULL);
	printf("%ld %ld\n", in_handler, in_main);
	return 0;
}
