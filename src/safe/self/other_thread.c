/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "safe/self/other_thread.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

#include "safe/base/own_thread.h"

/* si_code of the signals that are sent here: of none that others send (sigaction(2)). */
#define CODE (-0x4661)

/* include/uapi/linux/futex.h and time.h of Linux. */
#define WAIT_PRIVATE 128
#define WAKE_PRIVATE 129
#define MONOTONIC    1

/* How often who holds a thread is looked after, ns: it might have ended. */
#define WATCH_NS 1000000000

enum state {
	FREE,
	CLAIMED, /* by who asks, who writes into it */
	ASKED,
	TAKEN, /* by the handler, which writes into it */
	HELD,
	DONE, /* the handler may end, and frees it */
};

static int64_t now_ns(void)
{
	/* struct timespec of clock_gettime(2) */
	long now[2] = { 0, 0 };

	(void)fathom_sys(SYS_clock_gettime, MONOTONIC, (long)(uintptr_t)now, 0, 0, 0, 0);
	return (int64_t)now[0] * 1000000000 + now[1];
}

/* Waits until the state is not @state any more, at most @ns; may return early. */
static void wait_while(struct fathom_held *h, uint32_t state, int64_t ns)
{
	const long limit[2] = { (long)(ns / 1000000000), (long)(ns % 1000000000) };

	(void)fathom_sys(SYS_futex, (long)(uintptr_t)&h->state, WAIT_PRIVATE, (long)state,
			 (long)(uintptr_t)limit, 0, 0);
}

static void set_state(struct fathom_held *h, uint32_t state)
{
	atomic_store(&h->state, state);
	(void)fathom_sys(SYS_futex, (long)(uintptr_t)&h->state, WAKE_PRIVATE, 1, 0, 0, 0);
}

/* Shows where the thread is until who asked is done. */
static void be_held(struct fathom_held *h, const void *context)
{
	h->context = context;
	set_state(h, HELD);
	while (atomic_load(&h->state) == HELD) {
		wait_while(h, HELD, WATCH_NS);
		if (atomic_load(&h->state) == HELD &&
		    fathom_own_thread_is_gone(atomic_load(&h->asker)))
			break;
	}
	atomic_store(&h->state, FREE);
}

void fathom_be_held(const void *info, const void *context)
{
	const siginfo_t *signal = info;
	struct fathom_held_threads *threads = signal->si_value.sival_ptr;
	const int32_t tid = fathom_own_tid();

	if (signal->si_code != CODE)
		return;
	for (size_t i = 0; i < FATHOM_HELD_THREADS; i++) {
		struct fathom_held *h = &threads->items[i];
		uint32_t state = ASKED;

		if (atomic_load(&h->state) == ASKED && atomic_load(&h->tid) == tid &&
		    atomic_compare_exchange_strong(&h->state, &state, TAKEN))
			be_held(h, context);
	}
}

/* Claims a slot for thread @tid; NULL if all are in use. */
static struct fathom_held *claim(struct fathom_held_threads *threads, int32_t tid)
{
	for (size_t i = 0; i < FATHOM_HELD_THREADS; i++) {
		struct fathom_held *h = &threads->items[i];
		uint32_t state = FREE;

		if (!atomic_compare_exchange_strong(&h->state, &state, CLAIMED))
			continue;
		atomic_store(&h->tid, tid);
		atomic_store(&h->asker, fathom_own_tid());
		atomic_store(&h->state, ASKED);
		return h;
	}
	return NULL;
}

static fathom_err send(struct fathom_held_threads *threads, int32_t tid)
{
	const long pid = fathom_own_pid();
	siginfo_t info;
	long result;

	memset(&info, 0, sizeof info);
	info.si_signo = threads->signal;
	info.si_code = CODE;
	info.si_pid = (pid_t)pid;
	info.si_value.sival_ptr = threads;
	result = fathom_sys(SYS_rt_tgsigqueueinfo, pid, tid, threads->signal,
			    (long)(uintptr_t)&info, 0, 0);
	return !result ? FATHOM_OK : result == -ESRCH ? FATHOM_E_NOT_FOUND : FATHOM_E_OS;
}

/* Waits until the thread is held. Returns false if it is not in time; then the slot is free. */
static bool await(struct fathom_held *h, uint32_t deadline_ms)
{
	const int64_t end = now_ns() + (int64_t)deadline_ms * 1000000;

	for (;;) {
		uint32_t state = atomic_load(&h->state);
		int64_t left;

		if (state == HELD)
			return true;
		if (state == TAKEN) { /* it is a few instructions away */
			wait_while(h, TAKEN, WATCH_NS);
			continue;
		}
		left = end - now_ns();
		if (left > 0)
			wait_while(h, ASKED, left);
		else if (atomic_compare_exchange_strong(&h->state, &state, FREE))
			return false;
	}
}

fathom_err fathom_hold(struct fathom_held_threads *threads, int32_t tid, uint32_t deadline_ms,
		       struct fathom_held **ret, uint64_t *ret_mask)
{
	const uint64_t mask = fathom_signal_mask(SIG_BLOCK, fathom_signal_bit(threads->signal));
	struct fathom_held *h = claim(threads, tid);
	fathom_err err = h ? send(threads, tid) : FATHOM_E_LIMIT;
	uint32_t state = ASKED;

	if (h && err)
		/* A signal of another call may have come meanwhile, and let the handler take it. */
		err = atomic_compare_exchange_strong(&h->state, &state, FREE) ? err : FATHOM_OK;
	if (!err && !await(h, deadline_ms)) {
		atomic_store(&threads->is_late, true);
		err = FATHOM_E_TIMEOUT;
	}
	if (err) {
		(void)fathom_signal_mask(SIG_SETMASK, mask);
		return err;
	}
	*ret = h;
	*ret_mask = mask;
	return FATHOM_OK;
}

void fathom_hold_release(struct fathom_held *held, uint64_t mask)
{
	set_state(held, DONE);
	(void)fathom_signal_mask(SIG_SETMASK, mask);
}
