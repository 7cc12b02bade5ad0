/* SPDX-License-Identifier: MIT */
/* tree threads|forks|vforks|cleared|signals|dies|execs: makes threads or processes that make system
 * calls. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static void calls(int n)
{
	char name[32];
	int fd;

	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof name, "/nowhere/%d", i);
		fd = open(name, O_RDONLY | O_CLOEXEC);
		if (fd >= 0)
			close(fd);
		(void)!write(-1, "some text\n", 10);
	}
}

static void *run(void *data)
{
	calls(20);
	syscall(SYS_gettid);
	return data;
}

static int end(void *data)
{
	return !!data;
}

static void handle(int number)
{
	(void)number;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	pthread_t threads[8];
	int status;

	if (!strcmp(what, "threads")) {
		for (int i = 0; i < 8; i++)
			pthread_create(&threads[i], NULL, run, NULL);
		for (int i = 0; i < 8; i++)
			pthread_join(threads[i], NULL);
	} else if (!strcmp(what, "forks")) {
		for (int i = 0; i < 5; i++) {
			if (!fork()) {
				calls(5);
				_exit(i);
			}
			wait(&status);
		}
	} else if (!strcmp(what, "vforks")) {
		for (int i = 0; i < 3; i++) {
			if (!vfork()) {
				execl("/bin/true", "true", NULL);
				_exit(127);
			}
			wait(&status);
		}
	} else if (!strcmp(what, "cleared")) {
		static pid_t word;
		static char stack[65536] __attribute__((aligned(16)));

		clone(end, stack + sizeof stack,
		      CLONE_VM | CLONE_VFORK | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD,
		      NULL, &word, NULL, &word);
		return word ? 1 : 0;
	} else if (!strcmp(what, "signals")) {
		struct sigaction sa = { .sa_handler = handle };
		struct itimerval timer = { { 0, 0 }, { 0, 20000 } };
		sigset_t none, alarm_only;

		sigaction(SIGALRM, &sa, NULL);
		sigaction(SIGUSR1, &sa, NULL);
		/* However late it is, the signal comes while this waits. */
		sigemptyset(&none);
		sigemptyset(&alarm_only);
		sigaddset(&alarm_only, SIGALRM);
		sigprocmask(SIG_BLOCK, &alarm_only, NULL);
		setitimer(ITIMER_REAL, &timer, NULL);
		sigsuspend(&none);
		kill(getpid(), SIGUSR1);
		raise(SIGUSR1);
	} else if (!strcmp(what, "dies")) {
		calls(2);
		*(volatile int *)8 = 1;
	} else if (!strcmp(what, "execs")) {
		execl("/nowhere/true", "true", NULL);
		execl("/bin/true", "true", "word", NULL);
	} else if (!strcmp(what, "many")) {
		for (int i = 0; i < 500; i++) {
			if (!fork()) {
				calls(1);
				_exit(0);
			}
			if (i % 20 == 19)
				while (wait(&status) > 0)
					;
		}
		while (wait(&status) > 0)
			;
	}
	return 3;
}
