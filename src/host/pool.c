/* SPDX-License-Identifier: MIT */
#include "pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

struct run {
	fathom_task_fn *fn;
	void *data;
	size_t n;
	_Atomic size_t next;
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

	work(t->run, t->number);
	return NULL;
}

void fathom_pool_run(unsigned threads, size_t n, fathom_task_fn *fn, void *data)
{
	struct run run = { .fn = fn, .data = data, .n = n };
	struct thread others[FATHOM_MAX_THREADS];
	unsigned started = 0;
	sigset_t all;
	sigset_t before;

	if (threads > FATHOM_MAX_THREADS)
		threads = FATHOM_MAX_THREADS;
	/* Signals belong to the threads of the program that we are a guest in. */
	sigfillset(&all);
	if (threads > 1 && n > 1)
		(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	while (started + 1 < threads && started + 1 < n) {
		others[started] = (struct thread){ .run = &run, .number = started + 1 };
		if (pthread_create(&others[started].id, NULL, thread_main, &others[started]))
			break;
		started++;
	}
	if (threads > 1 && n > 1)
		(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	work(&run, 0);
	while (started)
		(void)pthread_join(others[--started].id, NULL);
}
