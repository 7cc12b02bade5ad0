/*
 * threads WHAT: threads whose stacks are known. Writes a line when all of them are where they stay.
 * - equal: the main thread, 10 threads in same(), one each in one(), two() and three()
 * - shares: the main thread spends three times as much time in often() as in seldom(), another sleeps
 * - deadlock: two threads, each of which holds the mutex that the other wants
 * - zombie: a child that has ended, whose number is in the line
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../lib/programs/others_wait.h"

static pthread_barrier_t ready;
static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t second = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long work;

static void *same(void *data)
{
	pthread_barrier_wait(&ready);
	pause();
	return data;
}

static void *one(void *data)
{
	pthread_barrier_wait(&ready);
	for (;;)
		sleep(1000);
	return data;
}

static void *two(void *data)
{
	pthread_setname_np(pthread_self(), "a;b 7 ");
	pthread_barrier_wait(&ready);
	pause();
	return data;
}

static void *three(void *data)
{
	char byte;
	int ends[2];

	if (pipe(ends))
		return NULL;
	pthread_barrier_wait(&ready);
	return read(ends[0], &byte, 1) ? data : NULL;
}

static void *lock_both(void *data)
{
	pthread_mutex_t *mine = data ? &first : &second;

	pthread_mutex_lock(mine);
	pthread_barrier_wait(&ready);
	pthread_mutex_lock(data ? &second : &first);
	pthread_mutex_unlock(mine);
	return NULL;
}

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return 1e3 * (double)t.tv_sec + (double)t.tv_nsec / 1e6;
}

static void often(double until)
{
	while (cpu_ms() < until)
		for (int i = 0; i < 20000; i++)
			work++;
}

static void seldom(double until)
{
	while (cpu_ms() < until)
		for (int i = 0; i < 20000; i++)
			work++;
}

static void start(int n, void *(*const *fns)(void *))
{
	pthread_t thread;

	pthread_barrier_init(&ready, NULL, (unsigned)n + 1);
	for (int i = 0; i < n; i++)
		pthread_create(&thread, NULL, fns[i], i ? &ready : NULL);
	pthread_barrier_wait(&ready);
}

static void say(int number)
{
	printf("%d\n", number);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static void *(*const fns[])(void *) = { same, same, same, same, same, same, same,
						same, same, same, one,	two,  three };
	static void *(*const lockers[])(void *) = { lock_both, lock_both };
	const char *what = argc > 1 ? argv[1] : "";
	double at = 0;
	int child;

	if (!strcmp(what, "equal"))
		start(13, fns);
	if (!strcmp(what, "deadlock"))
		start(2, lockers);
	if (!strcmp(what, "shares"))
		start(1, fns);
	child = !strcmp(what, "zombie") ? fork() : 1;
	if (!child)
		_exit(0);
	if (!strcmp(what, "zombie")) {
		siginfo_t ended;

		(void)waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT);
	}
	wait_for_others(&ready, sizeof ready);
	say(child);
	at = cpu_ms();
	while (!strcmp(what, "shares")) {
		often(at += 30);
		seldom(at += 10);
	}
	pause();
	return 0;
}
