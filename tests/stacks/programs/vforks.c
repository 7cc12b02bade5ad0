/* SPDX-License-Identifier: MIT */
/* vforks DEPTH: calls deeper() DEPTH times, and has a child by vfork() that prints "ready" and waits, on the same stack. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

volatile int sink;

__attribute__((noinline, noclone)) static void be_child(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	puts("ready");
	fflush(stdout);
	pause();
	_exit(1);
}

__attribute__((noinline, noclone)) int spawn(void)
{
	const pid_t child = vfork();
	int status;

	if (!child)
		be_child();
	return waitpid(child, &status, 0) == child;
}

__attribute__((noinline, noclone)) int deeper(int n)
{
	return (n ? deeper(n - 1) : spawn()) + sink;
}

int main(int argc, char **argv)
{
	sink = deeper(argc > 1 ? atoi(argv[1]) : 0);
	return 0;
}
