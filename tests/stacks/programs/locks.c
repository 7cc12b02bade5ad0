/* SPDX-License-Identifier: MIT */
/*
 * locks FOLDER: threads that wait for locks, each named after how; the main thread, or a child, has the locks. Prints
 * "done CHILD" when all are there. Those with a time limit wait for 1,000 seconds.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "../../lib/programs/others_wait.h"

static pthread_barrier_t both;
static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER, pi;
static pthread_mutex_t here = PTHREAD_MUTEX_INITIALIZER, there = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t written = PTHREAD_RWLOCK_INITIALIZER, read_twice = PTHREAD_RWLOCK_INITIALIZER;
static const char *names[] = { "flocked", "posix", "ofd" };

static struct timespec in_1000_s(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	t.tv_sec += 1000;
	return t;
}

static int open_file(const char *name)
{
	return open(name, O_RDWR | O_CREAT, 0600);
}

static void lock_file(unsigned i, int posix, int ofd)
{
	struct flock l = { .l_type = F_WRLCK };
	const int fd = open_file(names[i]);

	if (i == 0)
		flock(fd, LOCK_EX);
	else
		fcntl(fd, i == 1 ? posix : ofd, &l);
}

static void *run(void *data)
{
	const struct timespec real = in_1000_s(CLOCK_REALTIME), monotonic = in_1000_s(CLOCK_MONOTONIC);
	const char *how = data;

	prctl(PR_SET_NAME, how);
	if (!strcmp(how, "timed"))
		pthread_mutex_timedlock(&plain, &real);
	else if (!strcmp(how, "clocked"))
		pthread_mutex_clocklock(&plain, CLOCK_MONOTONIC, &monotonic);
	else if (!strcmp(how, "pi"))
		pthread_mutex_timedlock(&pi, &real);
	else if (!strcmp(how, "reader"))
		pthread_rwlock_rdlock(&written);
	else if (!strcmp(how, "timed-reader"))
		pthread_rwlock_timedrdlock(&written, &real);
	else if (!strcmp(how, "writer"))
		pthread_rwlock_wrlock(&written);
	else if (!strcmp(how, "waits-readers") || !strcmp(how, "second"))
		pthread_rwlock_wrlock(&read_twice);
	else if (!strcmp(how, "sleeper"))
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &monotonic, NULL);
	else if (!strcmp(how, "circle-1"))
		pthread_mutex_lock(&here), pthread_barrier_wait(&both), pthread_mutex_timedlock(&there, &real);
	else if (!strcmp(how, "circle-2"))
		pthread_mutex_lock(&there), pthread_barrier_wait(&both), pthread_mutex_lock(&here);
	for (unsigned i = 0; i < 3; i++)
		if (!strcmp(how, names[i]))
			lock_file(i, F_SETLKW, F_OFD_SETLKW);
	return NULL;
}

int main(int argc, char **argv)
{
	static const char *hows[] = { "timed", "clocked", "pi", "reader", "timed-reader", "writer", "waits-readers", "second",
				      "sleeper", "flocked", "posix", "ofd", "circle-1", "circle-2" };
	pthread_mutexattr_t a;
	pthread_t thread;
	char byte;
	int ready[2];
	pid_t child;

	if (argc < 2 || chdir(argv[1]) || pipe(ready))
		return 1;
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (unsigned i = 0; i < 3; i++)
			lock_file(i, F_SETLK, F_OFD_SETLK);
		if (write(ready[1], "x", 1) == 1)
			pause();
		_exit(0);
	}
	if (read(ready[0], &byte, 1) != 1)
		return 1;
	pthread_barrier_init(&both, NULL, 2);
	pthread_mutexattr_init(&a);
	pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&pi, &a);
	pthread_mutex_lock(&plain);
	pthread_mutex_lock(&pi);
	pthread_rwlock_wrlock(&written);
	pthread_rwlock_rdlock(&read_twice);
	pthread_rwlock_rdlock(&read_twice);
	for (unsigned i = 0; i < sizeof hows / sizeof *hows; i++) {
		/* The second writer comes behind the first. */
		if (!strcmp(hows[i], "second"))
			wait_for_others(NULL, 0);
		pthread_create(&thread, NULL, run, (void *)hows[i]);
	}
	wait_for_others(&both, sizeof both);
	printf("done %d\n", child);
	fflush(stdout);
	pause();
}
