/* SPDX-License-Identifier: MIT */
/*
 * What lines of JSON are about. "shown HOW" ends, dies or waits in that way; before it waits, it prints
 * "waits".
 */
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdexcept>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../lib/programs/others_wait.h"

extern "C" {
volatile int sink;
thread_local int of_thread = 4;
double not_a_number = __builtin_nan("");
double halves[2] = { 0.5, -1.5 };
char greeting[] = "gr\xc3\xbc\xc3\x9f \"dich\" \xff";
unsigned char raw[4] = { 1, 2, 254, 255 };
volatile int *pointer = &sink;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

namespace shown
{
static inline __attribute__((always_inline)) int inlined(int x)
{
	sink = x;
	return x * sink;
}

__attribute__((noinline)) int called(int x)
{
	return inlined(x) + 1;
}

struct point {
	__attribute__((noinline)) int method(int x)
	{
		return called(x) + inlined(x);
	}
};
}

static __attribute__((noinline)) void waits()
{
	(void)!write(1, "waits\n", 6);
	do
		pause();
	while (!sink);
}

static __attribute__((noinline)) int deep(int n)
{
	if (n)
		return deep(n - 1) + sink;
	waits();
	return 0;
}

static void *locks(void *)
{
	pthread_mutex_lock(&lock);
	return NULL;
}

static void *pauses(void *)
{
	for (;;)
		pause();
}

static void handler(int)
{
	waits();
}

static int calls(const char *how)
{
	int sum = 0;

	for (int i = 0; i < (how[5] ? 40 : 20); i++)
		sum += shown::point().method(i) + (i & 1 ? (int)strlen(getenv("PATH")) : 0);
	if (access("/nothing/there", 0) == 0)
		return 2;
	raise(SIGUSR1);
	return how[5] == '!' ? 3 : sum == 1;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	pthread_t thread;

	signal(SIGUSR1, SIG_IGN);
	of_thread = argc;
	if (!strncmp(how, "calls", 5))
		return calls(how);
	if (!strcmp(how, "throws"))
		throw std::runtime_error("thrown \xe2\x80\xae on purpose");
	if (!strcmp(how, "asserts"))
		assert(argc > 9);
	if (!strcmp(how, "null"))
		*(volatile int *)(long)(argc - 2) = 1;
	if (!strcmp(how, "text"))
		*(volatile char *)"constant" = 1;
	if (!strcmp(how, "deep"))
		return deep(11000);
	if (!strcmp(how, "overflows"))
		return deep(1 << 30);
	if (!strcmp(how, "spins") && write(1, "spins\n", 6))
		for (;;)
			sink++;
	if (!strcmp(how, "handler")) {
		signal(SIGUSR2, handler);
		raise(SIGUSR2);
	}
	for (int i = 0; i < 3 && !strcmp(how, "alike"); i++)
		pthread_create(&thread, NULL, pauses, NULL);
	if (!strcmp(how, "locked")) {
		pthread_mutex_lock(&lock);
		pthread_create(&thread, NULL, locks, NULL);
	}
	wait_for_others(NULL, 0);
	waits();
}
