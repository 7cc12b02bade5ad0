/* SPDX-License-Identifier: MIT */
/* ends HOW: ways to end. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

__attribute__((noinline)) void counted(void)
{
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void other(void)
{
	__asm__ volatile("" ::: "memory");
}

static void (*volatile nothing)(void);

__attribute__((noinline)) void caller(void)
{
	nothing();
	__asm__ volatile("");
}

__attribute__((noinline)) long deeper(long n)
{
	volatile char room[4096];

	room[0] = (char)n;
	return deeper(n + 1) + room[0];
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";

	if (!strcmp(how, "killed")) {
		for (int i = 0; i < 2500; i++) {
			counted();
			other();
		}
		kill(getpid(), SIGKILL);
	} else if (!strcmp(how, "aborted")) {
		abort();
	} else if (!strcmp(how, "null")) {
		caller();
	} else if (!strcmp(how, "overflow")) {
		return (int)deeper(0);
	} else if (!strcmp(how, "slow")) {
		const time_t end = time(NULL) + 2;

		puts("begun");
		(void)fflush(stdout);
		/* For two seconds, or until there is a file. */
		while (argc > 2 ? access(argv[2], F_OK) != 0 : time(NULL) < end)
			for (int i = 0; i < 10000; i++) {
				counted();
				other();
			}
		puts("ended");
	} else if (!strcmp(how, "many")) {
		for (int i = 0; i < 1500000; i++) {
			counted();
			other();
		}
		puts("ended");
	}
	return 7;
}
