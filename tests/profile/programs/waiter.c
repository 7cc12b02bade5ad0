/* SPDX-License-Identifier: MIT */
/*
 * waiter SECONDS: threads that wait, each for something else, in a function of that name; says
 * "NAME TID" of each, and ends after so long.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A function whose call of another one is not its end: it has a frame. */
#define NAMED __attribute__((noinline, optimize("no-optimize-sibling-calls")))

static int ends[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t semaphore;
static pid_t child;
static long seconds;

NAMED void reads(void)
{
	char c;

	(void)!read(ends[0], &c, 1);
}

NAMED void polls(void)
{
	struct pollfd p = { .fd = ends[0], .events = POLLIN };

	poll(&p, 1, -1);
}

NAMED void sleeps(void)
{
	const struct timespec t = { seconds + 10, 0 };

	nanosleep(&t, NULL);
}

NAMED void locks(void)
{
	pthread_mutex_lock(&mutex);
}

NAMED void counts(void)
{
	sem_wait(&semaphore);
}

NAMED void waits(void)
{
	int status;

	waitpid(child, &status, 0);
}

static const struct {
	const char *name;
	void (*call)(void);
} all[] = { { "reads", reads }, { "polls", polls },   { "sleeps", sleeps },
	    { "locks", locks }, { "counts", counts }, { "waits", waits } };

static void *run(void *data)
{
	const int i = *(int *)data;

	printf("%s %d\n", all[i].name, (int)gettid());
	all[i].call();
	all[i].call();
	return NULL;
}

int main(int argc, char **argv)
{
	static int numbers[6];
	pthread_t thread;

	seconds = argc > 1 ? atol(argv[1]) : 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (pipe(ends))
		return 1;
	sem_init(&semaphore, 0, 0);
	pthread_mutex_lock(&mutex);
	child = fork();
	if (!child)
		for (;;)
			pause();
	printf("main %d\nchild %d\n", (int)getpid(), (int)child);
	for (int i = 0; i < 6; i++) {
		numbers[i] = i;
		pthread_create(&thread, NULL, run, &numbers[i]);
	}
	sleep((unsigned)seconds);
	kill(child, SIGKILL);
	return 0;
}
