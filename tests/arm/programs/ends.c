/* SPDX-License-Identifier: MIT */
/* ends N HOW: makes N calls, then ends as HOW says. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) void one(void)
{
	__asm__ volatile("");
}

__attribute__((noinline)) void other(void)
{
	__asm__ volatile("");
}

__attribute__((noinline)) void in_child(void)
{
	__asm__ volatile("");
}

int main(int argc, char **argv)
{
	(void)argc;
	for (long n = atol(argv[1]); n > 0; n -= 2) {
		one();
		other();
	}
	if (!strcmp(argv[2], "killed"))
		kill(getpid(), SIGKILL);
	if (!strcmp(argv[2], "left"))
		_exit(3);
	if (!strcmp(argv[2], "forks")) {
		for (int i = 0; i < 10; i++) {
			if (!fork()) {
				in_child();
				_exit(0);
			}
			wait(NULL);
			one();
		}
	}
	return 5;
}
