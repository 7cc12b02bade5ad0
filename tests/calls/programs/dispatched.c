/* SPDX-License-Identifier: MIT */
/*
 * What is easily broken where system calls are dispatched by SIGSYS: masks, stacks of handlers,
 * actions, children of all kinds; and a region of a program whose threads were there before.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fathom/trace.h"

extern char **environ;

static volatile sig_atomic_t n_handled;
static char other_stack[65536];
static int on_other_stack;

static void count(int number)
{
	char here;

	(void)number;
	on_other_stack = &here >= other_stack && &here < other_stack + sizeof other_stack;
	(void)getppid();
	n_handled = n_handled + 1;
}

/* Prints what the program has said of its signals. */
static void tell_signals(void)
{
	struct sigaction action = { .sa_handler = count };
	struct sigaction old;
	stack_t stack = { .ss_sp = other_stack, .ss_size = sizeof other_stack };
	sigset_t mask;

	sigfillset(&action.sa_mask);
	action.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR1, NULL, &old);
	printf("mask of an action: %d %d\n", sigismember(&old.sa_mask, SIGSYS), sigismember(&old.sa_mask, SIGHUP));
	sigaltstack(&stack, NULL);
	memset(&stack, 0, sizeof stack);
	sigaltstack(NULL, &stack);
	printf("stack: %d\n", stack.ss_sp == other_stack);
	raise(SIGUSR1);
	printf("handled: %d %d\n", (int)n_handled, on_other_stack);
	sigfillset(&mask);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	(void)getppid();
	sigprocmask(SIG_BLOCK, NULL, &mask);
	printf("blocked: %d %d\n", sigismember(&mask, SIGSYS), sigismember(&mask, SIGHUP));
	raise(SIGUSR1);
	printf("pending: %d\n", (int)n_handled);
	sigemptyset(&mask);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	printf("unblocked: %d\n", (int)n_handled);
	sigaction(SIGSYS, NULL, &old);
	printf("SIGSYS: %d\n", old.sa_handler == SIG_DFL);
	sigaction(SIGSYS, &action, NULL);
	sigaction(SIGSYS, NULL, &old);
	kill(getpid(), SIGSYS);
	printf("SIGSYS: %d %d\n", old.sa_handler == count, (int)n_handled);
	signal(SIGSYS, SIG_IGN);
	kill(getpid(), SIGSYS);
	printf("SIGSYS: %d\n", (int)n_handled);
}

static void *read_file(void *data)
{
	char bytes[16];
	const int fd = open("/etc/passwd", O_RDONLY);

	(void)!read(fd, bytes, sizeof bytes);
	close(fd);
	/* Its number is not told: it differs. */
	return data;
}

/* What the process of vfork() does. */
static int spawn_by_vfork(const char *program)
{
	int status = 0;
	const pid_t pid = vfork();

	if (!pid) {
		/* One within the other. */
		if (!vfork())
			_exit(5);
		execl(program, program, (char *)NULL);
		_exit(9);
	}
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

/* Runs a program that this one traces: its tracer waits in vfork() until it has become that. */
static int trace_program(const char *program)
{
	int status = 0;
	const pid_t pid = vfork();

	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execl(program, program, (char *)NULL);
		_exit(9);
	}
	waitpid(pid, &status, 0);
	if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP)
		return -1;
	ptrace(PTRACE_CONT, pid, NULL, NULL);
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static int spawn_by_posix(const char *program)
{
	char *const argv[] = { (char *)(uintptr_t)program, NULL };
	int status = 0;
	pid_t pid = 0;

	posix_spawn(&pid, program, NULL, NULL, argv, environ);
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static void make_children(void)
{
	pthread_t threads[3];
	int status = 0;

	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, read_file, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	if (!fork()) {
		pthread_create(threads, NULL, read_file, NULL);
		pthread_join(threads[0], NULL);
		_exit(4);
	}
	wait(&status);
	printf("%d\n", trace_program("/bin/false"));
	printf("%d %d %d\n", WEXITSTATUS(status), spawn_by_vfork("/bin/false"), spawn_by_posix("/bin/true"));
}

/* Calls that signals interrupt, with and without SA_RESTART. */
static void interrupt(void)
{
	struct sigaction action = { .sa_handler = count };
	const struct timespec pause = { .tv_nsec = 20000000 };
	timer_t timer;
	int pipe_ends[2];
	char byte;

	(void)!pipe(pipe_ends);
	for (int flags = 0; flags < 2; flags++) {
		struct itimerspec when = { .it_value = { .tv_nsec = 10000000 } };

		action.sa_flags = flags ? SA_RESTART : 0;
		sigaction(SIGALRM, &action, NULL);
		timer_create(CLOCK_MONOTONIC, NULL, &timer);
		timer_settime(timer, 0, &when, NULL);
		if (flags) {
			printf("%d\n", nanosleep(&pause, NULL) == -1 && errno == EINTR);
		} else {
			printf("%d\n", read(pipe_ends[0], &byte, 1) == -1 && errno == EINTR);
		}
		timer_delete(timer);
	}
}

static volatile int is_over;
static volatile int n_ready;

static void *call_on(void *data)
{
	n_ready = 1;
	while (!is_over) {
		(void)syscall(SYS_getpgid, 0);
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	return data;
}

/* A thread that was there before calls within the region, too. */
static void trace_region(const char *options, const char *others)
{
	pthread_t thread;

	pthread_create(&thread, NULL, call_on, NULL);
	while (!n_ready)
		;
	(void)syscall(SYS_getpgrp);
	printf("\n");
	printf("%d", fathom_trace_start(options, NULL));
	for (int i = 0; i < 5; i++)
		(void)syscall(SYS_getppid);
	fathom_trace_thread(-1);
	(void)syscall(SYS_getuid);
	fathom_trace_thread(1);
	nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	printf(" %d", fathom_trace_stop(NULL));
	(void)syscall(SYS_getgid);
	printf(" %d", fathom_trace_start(others, NULL));
	(void)syscall(SYS_geteuid);
	printf(" %d\n", fathom_trace_stop(NULL));
	is_over = 1;
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(what, "signals"))
		tell_signals();
	else if (!strcmp(what, "children"))
		make_children();
	else if (!strcmp(what, "interrupt"))
		interrupt();
	else if (!strcmp(what, "region"))
		trace_region(argv[2], argv[3]);
	return 3;
}
