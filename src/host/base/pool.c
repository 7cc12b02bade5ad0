/* SPDX-License-Identifier: MIT */
#include "host/base/pool.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "host/base/thread_on.h"

struct run {
	fathom_task_fn *fn;
	void *data;
	size_t n;
	_Atomic size_t next;
	cpu_set_t processors; /* those of this process, if known */
	bool knows_processors;
};

struct thread {
	struct run *run;
	pthread_t id;
	unsigned number;
};

static void work(struct run *run, unsigned number)
{
	size_t task;

	while ((task = atomic_fetch_add(&run->next, 1)) < run->n)
		run->fn(run->data, task, number);
}

static void *thread_main(void *arg)
{
	const struct thread *t = arg;

	if (t->run->knows_processors)
		(void)pthread_setaffinity_np(pthread_self(), sizeof t->run->processors,
					     &t->run->processors);
	work(t->run, t->number);
	return NULL;
}

/*
 * Starts the thread on another processor than this one, if there is one. It may move as soon as it
 * runs. The kernel of a virtual machine often does not see that a processor is idle, and would
 * queue the thread after its creator for milliseconds.
 */
static int start_elsewhere(struct thread *t)
{
	cpu_set_t others;
	const int here = sched_getcpu();

	if (here < 0 || !t->run->knows_processors)
		return pthread_create(&t->id, NULL, thread_main, t);
	others = t->run->processors;
	CPU_CLR((size_t)here, &others);
	return fathom_thread_start_on(&others, thread_main, t, &t->id);
}

/*
 * Sets the signals that our threads block, so that the program's own threads get them: all but
 * those that a fault of our thread raises. If such a signal is blocked, it ends the process,
 * whatever handler there is.
 */
void fathom_foreign_signals(sigset_t *ret)
{
	static const int faults[] = { SIGBUS, SIGSEGV, SIGILL, SIGFPE, SIGTRAP, SIGSYS };

	sigfillset(ret);
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
		sigdelset(ret, faults[i]);
}

/* Between two calls of a watch. */
#define WATCH_NS  10000000
#define SECOND_NS 1000000000

/*
 * Waits until thread @id has ended; until then calls @watch from time to time. A clock that is set
 * back delays that, not the end. ThreadSanitizer does not know pthread_clockjoin_np().
 */
static void wait_for(pthread_t id, fathom_watch_fn *watch, void *data)
{
	struct timespec until;

	while (watch) {
		(void)clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += WATCH_NS;
		until.tv_sec += until.tv_nsec / SECOND_NS;
		until.tv_nsec %= SECOND_NS;
		if (pthread_timedjoin_np(id, NULL, &until) != ETIMEDOUT)
			return;
		watch(data);
	}
	(void)pthread_join(id, NULL);
}

void fathom_pool_run(unsigned threads, size_t n, fathom_task_fn *fn, void *data)
{
	fathom_pool_run_watched(threads, n, fn, data, NULL);
}

void fathom_pool_run_watched(unsigned threads, size_t n, fathom_task_fn *fn, void *data,
			     fathom_watch_fn *watch)
{
	struct run run = { .fn = fn, .data = data, .n = n };
	struct thread others[FATHOM_MAX_THREADS];
	unsigned started = 0;
	sigset_t all;
	sigset_t before;

	if (threads > FATHOM_MAX_THREADS)
		threads = FATHOM_MAX_THREADS;
	fathom_foreign_signals(&all);
	if (threads > 1 && n > 1) {
		(void)pthread_sigmask(SIG_SETMASK, &all, &before);
		run.knows_processors =
			!sched_getaffinity(0, sizeof run.processors, &run.processors);
	}
	while (started + 1 < threads && started + 1 < n) {
		others[started] = (struct thread){ .run = &run, .number = started + 1 };
		if (start_elsewhere(&others[started]))
			break;
		started++;
	}
	if (threads > 1 && n > 1)
		(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	work(&run, 0);
	while (started)
		wait_for(others[--started].id, watch, data);
}
