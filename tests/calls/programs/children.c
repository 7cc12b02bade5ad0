/* SPDX-License-Identifier: MIT */
/* Children of all kinds; each says which it is by the function that it calls. */
#define _GNU_SOURCE
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define KEPT(name)                                   \
	__attribute__((noinline)) void name(void)    \
	{                                            \
		__asm__ volatile("" ::: "memory");   \
	}

KEPT(in_parent)
KEPT(in_fork)
KEPT(in_vfork)
KEPT(in_program)
KEPT(in_grandchild)

static char *self;

__attribute__((noinline)) static void *become(void *data)
{
	char *const words[] = { self, data, NULL };

	execv(self, words);
	return NULL;
}

__attribute__((noinline)) static void wait_for(pid_t pid)
{
	waitpid(pid, NULL, 0);
}

/* Waits until the grandchild has ended: it holds the other end of the pipe. */
__attribute__((noinline)) static void leave_grandchild(void)
{
	int ends[2];
	char byte;
	pid_t pid;

	(void)!pipe(ends);
	pid = fork();
	if (!pid) {
		if (!fork()) {
			setsid();
			usleep(20000);
			in_grandchild();
			_exit(0);
		}
		_exit(0);
	}
	close(ends[1]);
	wait_for(pid);
	(void)!read(ends[0], &byte, 1);
}

int main(int argc, char **argv)
{
	char *const words[] = { argv[0], "program", NULL };
	pthread_t thread;
	pid_t pid;

	self = argv[0];
	if (argc > 1) {
		in_program();
		return 0;
	}
	for (int i = 0; i < 20; i++) {
		pid = fork();
		if (!pid) {
			in_fork();
			_exit(i);
		}
		wait_for(pid);
	}
	for (int i = 0; i < 20; i++) {
		pid = vfork();
		if (!pid) {
			in_vfork();
			execv(self, words);
			_exit(1);
		}
		wait_for(pid);
		in_parent();
	}
	for (int i = 0; i < 10; i++) {
		posix_spawn(&pid, self, NULL, NULL, words, environ);
		wait_for(pid);
	}
	leave_grandchild();
	/* Another thread becomes a program: the first is gone. */
	pid = fork();
	if (!pid) {
		pthread_create(&thread, NULL, become, "thread");
		pause();
	}
	wait_for(pid);
	puts("done");
	return 0;
}
