/* SPDX-License-Identifier: MIT */
/*
 * others ROUNDS: threads that run, sleep, allocate or block signals, each in a known number of calls;
 * several others unwind them, and each other, all at once. What is found must be what is true, calls
 * that sleep must go on, and errno must stay what it is.
 */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

enum how { SPINS, PAUSES, READS, WAITS, ALLOCATES, BLOCKS, N_WORKERS, N_ASKERS = 4, MOST = 64 };

static const int depth_of[N_WORKERS] = { 3, 7, 11, 2, 20, 5 };
static _Atomic int32_t tids[N_WORKERS];
static _Atomic int32_t askers[N_ASKERS];
static _Atomic bool stop;
static _Atomic int n_interrupted;
static _Atomic unsigned long n_held;
static _Atomic unsigned long n_late;
static int ends[2];
static sem_t semaphore;
static int rounds;

static void do_work(enum how how)
{
	sigset_t all;
	char byte;

	switch (how) {
	case READS:
		n_interrupted += read(ends[0], &byte, 1) != 1;
		break;
	case WAITS:
		n_interrupted += sem_wait(&semaphore) != 0;
		break;
	case PAUSES:
		/* A handler that has run ends pause(), whatever it did. */
		while (!stop)
			usleep(1000000);
		break;
	case ALLOCATES:
		while (!stop) {
			void *volatile p = malloc(100 + (size_t)rand() % 5000);

			free(p);
		}
		break;
	case BLOCKS:
		sigfillset(&all);
		(void)pthread_sigmask(SIG_BLOCK, &all, NULL);
		while (!stop)
			usleep(1000);
		break;
	default:
		while (!stop)
			;
	}
}

__attribute__((noinline)) static int deeper(int n, enum how how)
{
	if (!n) {
		tids[how] = gettid();
		do_work(how);
	}
	return n ? deeper(n - 1, how) + 1 : 0;
}

static void *work(void *data)
{
	const enum how how = (enum how)(intptr_t)data;

	if (deeper(depth_of[how], how) < 0)
		puts("never");
	return NULL;
}

/* Returns how many of the @n pcs are of @name. */
static int count(const uint64_t *pcs, const uint8_t *kinds, size_t n, const char *name)
{
	char buffer[FATHOM_SELF_BUFFER];
	int found = 0;

	for (size_t i = 0; i < n; i++) {
		const struct fathom_pc pc = { .address = pcs[i], .kind = kinds[i] };
		const struct fathom_answer *a = fathom_self_lookup(self, pc, 0, buffer, sizeof buffer);

		found += a->symbol && strcmp(a->symbol, name) == 0;
	}
	return found;
}

static fathom_err ask(int32_t tid, uint64_t *pcs, uint8_t *kinds, struct fathom_unwind_result *r)
{
	const struct fathom_unwind_options options = { .size = sizeof options, .tid = tid, .deadline_ms = 10000 };

	*r = (struct fathom_unwind_result){ .size = sizeof *r };
	return fathom_unwind(self, &options, pcs, kinds, MOST, r);
}

static void check_worker(enum how how)
{
	struct fathom_unwind_result r;
	uint64_t pcs[MOST];
	uint8_t kinds[MOST];

	errno = 4711;
	expect(!ask(tids[how], pcs, kinds, &r));
	expect(errno == 4711);
	expect(r.stop == FATHOM_STOP_ENTRY && r.trust <= FATHOM_TRUST_SIGNAL && kinds[0] == FATHOM_PC_EXACT);
	expect(count(pcs, kinds, r.n, "deeper") == depth_of[how] + 1);
	expect(count(pcs, kinds, r.n, "work") == 1 && count(pcs, kinds, r.n, "main") == 0);
	n_held++;
}

/* Two that ask each other at one time are both too late: neither takes signals while it asks. */
static void check_asker(unsigned i)
{
	const struct fathom_unwind_options options = { .size = sizeof options, .tid = askers[i], .deadline_ms = 1 };
	struct fathom_unwind_result r = { .size = sizeof r };
	uint64_t pcs[MOST];
	uint8_t kinds[MOST];
	fathom_err err;

	if (!askers[i])
		return;
	err = fathom_unwind(self, &options, pcs, kinds, MOST, &r);
	expect(!err || err == FATHOM_E_TIMEOUT || err == FATHOM_E_NOT_FOUND);
	n_late += err == FATHOM_E_TIMEOUT;
	if (!err)
		expect(r.stop == FATHOM_STOP_ENTRY && count(pcs, kinds, r.n, "asks") == 1);
}

static void *asks(void *data)
{
	const unsigned me = (unsigned)(uintptr_t)data;
	unsigned dice = me;

	askers[me] = gettid();
	for (int i = 0; i < rounds; i++) {
		dice = dice * 1664525 + 1013904223;
		check_worker((enum how)((dice >> 16) % BLOCKS));
		check_asker((dice >> 20) % N_ASKERS);
	}
	return NULL;
}

__attribute__((noinline)) static void check_errors(void)
{
	struct fathom_unwind_options options = { .size = sizeof options, .tid = tids[BLOCKS], .deadline_ms = 20 };
	const struct fathom_self_options taken = { .size = sizeof taken, .flags = FATHOM_SELF_UNWIND, .signal = SIGUSR1 };
	const struct fathom_self_options none = { .size = sizeof none, .signal = SIGKILL };
	struct fathom_unwind_result r = { .size = sizeof r };
	struct fathom_self *other;
	uint64_t pcs[MOST];
	uint8_t kinds[MOST];

	expect(fathom_unwind(self, &options, pcs, kinds, MOST, &r) == FATHOM_E_TIMEOUT);
	options.tid = 0x3fffffff;
	expect(fathom_unwind(self, &options, pcs, kinds, MOST, &r) == FATHOM_E_NOT_FOUND);
	/* Its own thread: as without a number. */
	options.tid = gettid();
	expect(!fathom_unwind(self, &options, pcs, kinds, MOST, &r));
	expect(r.n && count(pcs, kinds, 1, "check_errors") == 1 && count(pcs, kinds, r.n, "main") == 1);
	(void)signal(SIGUSR1, exit);
	expect(fathom_self_prepare(session, &taken, &other, NULL) == FATHOM_E_ARGUMENT);
	expect(fathom_self_prepare(session, &none, &other, NULL) == FATHOM_E_ARGUMENT);
	/* Somebody else's signal is ignored. */
	(void)raise(SIGRTMIN + 5);
}

int main(int argc, char **argv)
{
	const struct fathom_options options = { .size = sizeof options, .flags = FATHOM_NO_CACHE };
	const struct fathom_self_options how = { .size = sizeof how,
						 .flags = FATHOM_SELF_UNWIND,
						 .signal = SIGRTMIN + 5 };
	pthread_t workers[N_WORKERS];
	pthread_t others[N_ASKERS];

	rounds = argc > 1 ? atoi(argv[1]) : 100;
	if (fathom_create(&options, &session, NULL) || fathom_self_prepare(session, &how, &self, NULL) ||
	    pipe(ends) || sem_init(&semaphore, 0, 0))
		return 1;
	for (intptr_t i = 0; i < N_WORKERS; i++)
		(void)pthread_create(&workers[i], NULL, work, (void *)i);
	for (int i = 0; i < N_WORKERS; i++)
		while (!tids[i])
			usleep(1000);
	check_errors();
	for (uintptr_t i = 0; i < N_ASKERS; i++)
		(void)pthread_create(&others[i], NULL, asks, (void *)i);
	for (int i = 0; i < N_ASKERS; i++)
		(void)pthread_join(others[i], NULL);
	stop = true;
	expect(write(ends[1], "x", 1) == 1);
	(void)sem_post(&semaphore);
	for (int i = 0; i < N_WORKERS; i++)
		(void)pthread_join(workers[i], NULL);
	expect(n_interrupted == 0);
	printf("held %lu late %lu\n", n_held, n_late);
	return end();
}
