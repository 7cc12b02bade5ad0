/* SPDX-License-Identifier: MIT */
/* Threads that call some functions very often, and one a few times; calls of a library, too. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { N_THREADS = 4, N_CALLS = 200000, N_SELDOM = 50 };

#define HOT(name)                                   \
	__attribute__((noinline)) void name(void)   \
	{                                           \
		__asm__ volatile("");               \
	}

HOT(hot0)
HOT(hot1)
HOT(hot2)
HOT(hot3)
HOT(seldom)

static void *turn(void *data)
{
	void (*const hot[])(void) = { hot0, hot1, hot2, hot3 };

	for (long i = 0; i < N_CALLS; i++) {
		hot[i % 4]();
		if (i % (N_CALLS / N_SELDOM) == 0)
			seldom();
		(void)getppid();
	}
	return data;
}

/* Whether there is a call in front of @function. */
static int is_hooked(void (*function)(void))
{
	return ((const volatile unsigned char *)(size_t)function)[-16] == 0xe8;
}

static int n_hooked(void)
{
	return is_hooked(hot0) + is_hooked(hot1) + is_hooked(hot2) + is_hooked(hot3);
}

int main(void)
{
	pthread_t threads[N_THREADS];

	for (int i = 0; i < N_THREADS; i++)
		pthread_create(&threads[i], NULL, turn, NULL);
	for (int i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; n_hooked() && i < 5000; i++)
		usleep(1000);
	printf("joined %d %d\n", n_hooked(), is_hooked(seldom));
	return 0;
}
