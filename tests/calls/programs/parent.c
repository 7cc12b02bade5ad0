/* SPDX-License-Identifier: MIT */
/*
 * Makes children by fork(), vfork() and clone(CLONE_VM), each of which calls counted() and asks to
 * be traced by its parent, and says for each how that went, and whether anything of a tracer is
 * mapped; calls counted() four times itself.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) void counted(void)
{
	__asm__ volatile("" ::: "memory");
}

static int has_tracer(void)
{
	char line[512];
	int found = 0;
	FILE *f = fopen("/proc/self/maps", "r");

	while (f && fgets(line, sizeof line, f))
		found |= strstr(line, "fathom-trace") != NULL;
	return !f || found;
}

static int child(void *data)
{
	counted();
	counted();
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(1);
	/* Its own memory only: others are their parent's. */
	_exit(data && has_tracer() ? 2 : 0);
}

static int status_of(pid_t pid)
{
	int status = -1;

	(void)waitpid(pid, &status, __WALL);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

int main(void)
{
	char *stack = malloc(1 << 16);
	pid_t pid;
	int statuses[3];

	counted();
	pid = fork();
	if (!pid)
		child(stack);
	statuses[0] = status_of(pid);
	counted();
	pid = vfork();
	if (!pid)
		child(NULL);
	statuses[1] = status_of(pid);
	counted();
	pid = clone(child, stack + (1 << 16), CLONE_VM | SIGCHLD, NULL);
	statuses[2] = status_of(pid);
	counted();
	printf("%d %d %d\n", statuses[0], statuses[1], statuses[2]);
	return 0;
}
