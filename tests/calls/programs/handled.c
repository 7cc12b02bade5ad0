/* SPDX-License-Identifier: MIT */
/* Threads make calls, and children of all kinds, while handlers of signals interrupt them. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 6
#define STACK   32768

extern char **environ;

static _Atomic long n_handled, n_bad;
static _Atomic int n_done;
static pthread_t threads[THREADS];

static void handle(int number)
{
	char byte;

	(void)number;
	(void)getppid();
	(void)!read(-1, &byte, 1);
	n_handled++;
}

static void end_with(pid_t pid, int wanted)
{
	int status = -1;

	while (waitpid(pid, &status, 0) < 0)
		;
	n_bad += WEXITSTATUS(status) != wanted;
}

static void make_children(void)
{
	char *const words[] = { (char *)(uintptr_t)"true", NULL };
	pid_t pid = fork();

	if (!pid)
		_exit(7);
	end_with(pid, 7);
	pid = vfork();
	if (!pid)
		_exit(8);
	end_with(pid, 8);
	if (posix_spawn(&pid, "/bin/true", NULL, NULL, words, environ))
		n_bad++;
	else
		end_with(pid, 0);
}

static void *make_calls(void *data)
{
	const stack_t stack = { .ss_sp = malloc(STACK), .ss_size = STACK };
	sigset_t mask, before;
	int ends[2];
	char bytes[8];

	/* Each second one has a signal stack. */
	if ((uintptr_t)data & 1)
		sigaltstack(&stack, NULL);
	(void)!pipe(ends);
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	for (int i = 0; i < 1000 || n_handled <= 100; i++) {
		struct pollfd wanted = { .fd = ends[0], .events = POLLIN };
		const int fd = open("/etc/passwd", O_RDONLY);

		n_bad += read(fd, bytes, sizeof bytes) != sizeof bytes;
		n_bad += close(fd) != 0;
		n_bad += write(ends[1], bytes, sizeof bytes) != sizeof bytes;
		n_bad += read(ends[0], bytes, sizeof bytes) != sizeof bytes;
		(void)poll(&wanted, 1, 0);
		pthread_sigmask(SIG_BLOCK, &mask, &before);
		(void)getppid();
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		if (i % 250 == 0)
			make_children();
	}
	n_done++;
	/* It takes signals until all are done. */
	while (n_done < THREADS + 1)
		usleep(1000);
	return NULL;
}

int main(void)
{
	struct sigaction action = { .sa_handler = handle, .sa_flags = SA_ONSTACK | SA_RESTART };

	sigaction(SIGUSR1, &action, NULL);
	action.sa_flags = SA_RESTART;
	sigaction(SIGUSR2, &action, NULL);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, make_calls, (void *)i);
	while (n_done < THREADS) {
		for (int i = 0; i < THREADS; i++)
			pthread_kill(threads[i], i & 2 ? SIGUSR1 : SIGUSR2);
		usleep(200);
	}
	n_done++;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("bad: %ld, %s\n", n_bad, n_handled > 100 ? "handled" : "few");
	return 3;
}
