/* SPDX-License-Identifier: MIT */
/*
 * loads: threads whose times are known. "burner" runs: by its own clock three times as long in
 * heavy() as in light(). "reader" waits for a pipe, "locked" for a mutex that "holder" has, which
 * waits for an alarm that never comes. Prints "NAME TID" lines, then "ready".
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t told;
static pthread_barrier_t held;
static int ends[2];

static uint64_t own_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

#define FUNCTION(name)                                           \
	__attribute__((noinline)) uint64_t name(uint64_t ns)     \
	{                                                        \
		const uint64_t begin = own_clock();              \
		volatile uint64_t sink = 0;                      \
		uint64_t now = begin;                            \
                                                                 \
		while (now - begin < ns) {                       \
			for (int i = 0; i < 20000; i++)          \
				sink += (uint64_t)i;             \
			now = own_clock();                       \
		}                                                \
		return now - begin;                              \
	}

FUNCTION(heavy)
FUNCTION(light)

static void tell(const char *name)
{
	pthread_setname_np(pthread_self(), name);
	printf("%s %d\n", name, (int)gettid());
	fflush(stdout);
	pthread_barrier_wait(&told);
}

static void *burner(void *data)
{
	uint64_t h = 0;
	uint64_t l = 0;

	tell("burner");
	for (;;) {
		l += light(1000000);
		while (h < 3 * l)
			h += heavy(3 * l - h);
	}
	return data;
}

static void *reader(void *data)
{
	char byte;

	tell("reader");
	(void)!read(ends[0], &byte, 1);
	return data;
}

static void *holder(void *data)
{
	pthread_mutex_lock(&mutex);
	pthread_barrier_wait(&held);
	tell("holder");
	for (;;)
		pause();
	return data;
}

static void *locked(void *data)
{
	pthread_barrier_wait(&held);
	tell("locked");
	pthread_mutex_lock(&mutex);
	return data;
}

int main(void)
{
	void *(*const starts[])(void *) = { burner, reader, holder, locked };
	pthread_t threads[4];
	char byte;

	(void)!pipe(ends);
	pthread_barrier_init(&told, NULL, 5);
	pthread_barrier_init(&held, NULL, 2);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, starts[i], NULL);
	pthread_barrier_wait(&told);
	puts("ready");
	fflush(stdout);
	(void)!read(STDIN_FILENO, &byte, 1);
	_exit(0);
}
