/* SPDX-License-Identifier: MIT */
/*
 * Holds another thread of this process in a signal's handler while its stack is walked.
 *
 * The thread that asks claims a slot, writes the thread's number into it and sends the signal. The
 * handler takes all slots with its thread's number, shows in each where the thread was interrupted,
 * and waits until the asking thread is done. That thread takes the slot back if it has waited too
 * long; a handler that comes later finds nothing to do. The signal carries the slots, so no state
 * is at file scope.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_SELF_OTHER_THREAD_H
#define FATHOM_SELF_OTHER_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "fathom/error.h"

/* Threads that can be held at one time. */
#define FATHOM_HELD_THREADS 32

struct fathom_held {
	_Atomic uint32_t state; /* what the threads wait for: a futex */
	_Atomic int32_t tid;
	_Atomic int32_t asker;
	const void *context; /* ucontext_t, while the thread is held */
};

/* Of one prepared process. */
struct fathom_held_threads {
	int32_t signal;
	_Atomic bool is_late; /* a thread may still take its signal */
	struct fathom_held items[FATHOM_HELD_THREADS];
};

/* Holds the calling thread; called by the signal's handler with its arguments. */
void fathom_be_held(const void *info, const void *context);

/*
 * Holds thread @tid, which is not the calling one. Until it is let go the calling thread takes no
 * signal of this number itself: *@ret_mask is what it took before. Returns FATHOM_OK and the held
 * thread; FATHOM_E_NOT_FOUND: there is no such thread; FATHOM_E_TIMEOUT: it has not taken the
 * signal within @deadline_ms; FATHOM_E_LIMIT: too many threads are held; FATHOM_E_OS: it cannot be
 * sent.
 */
fathom_err fathom_hold(struct fathom_held_threads *threads, int32_t tid, uint32_t deadline_ms,
		       struct fathom_held **ret, uint64_t *ret_mask);

/* Lets the thread go. */
void fathom_hold_release(struct fathom_held *held, uint64_t mask);

#endif
