/* SPDX-License-Identifier: MIT */
/* Two threads write one variable without a lock. */
#include <pthread.h>
#include <stddef.h>

static int shared;

static void __attribute__((noinline)) raise_it(int by)
{
	shared += by;
}

static void *work(void *data)
{
	raise_it(2);
	return data;
}

int main(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, work, NULL);
	raise_it(1);
	pthread_join(thread, NULL);
	return 0;
}
