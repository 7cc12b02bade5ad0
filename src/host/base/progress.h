/* SPDX-License-Identifier: MIT */
/*
 * Progress of calls, and giving them up. A call that can take long begins with fathom_call_begin()
 * and ends with fathom_call_end(); between them, whatever is done for it asks fathom_goes_on(): the
 * caller's function is called if this is the calling thread, and says whether to go on. On another
 * thread of the call (fathom_run_asking()) the answer is what the caller has said last. No lock may
 * be held.
 *
 * Without struct fathom_options.progress all of this costs one comparison.
 */
#ifndef FATHOM_BASE_PROGRESS_H
#define FATHOM_BASE_PROGRESS_H

#include <stdatomic.h>

#include "host/base/context.h"
#include "host/base/pool.h"

/* A call under way, on the stack of the thread that made it. */
struct fathom_call {
	struct fathom *session; /* NULL: nobody asks, or it is part of another call */
	struct fathom_call *next;
	struct fathom_call *leader; /* itself, or the call that this thread works for */
	pthread_t thread;
	struct fathom_progress last; /* what was asked last; the leader's thread only */
	_Atomic bool is_cancelled;   /* of the leader */
};

void fathom_call_begin(struct fathom_call *c, struct fathom *session);

/* Ends @c; returns @err, or FATHOM_E_CANCELLED if the caller has given it up. */
fathom_err fathom_call_end(struct fathom_call *c, fathom_err err, struct fathom_errinfo *reterr);

/* Returns the caller's answer: FATHOM_GO_ON, FATHOM_CANCEL or FATHOM_SKIP. */
int fathom_ask(struct fathom *session, enum fathom_phase phase, uint64_t done, uint64_t total);

/* Asks; returns false when the call is to end soon, with whatever error. */
static inline bool fathom_goes_on(struct fathom *session, enum fathom_phase phase, uint64_t done,
				  uint64_t total)
{
	return !session->progress || fathom_ask(session, phase, done, total) != FATHOM_CANCEL;
}

/* Asks again what was asked last, for work that does not know what it is part of. */
bool fathom_ask_again(struct fathom *session);

/*
 * Asks from within a loop, once for each @step of its work. A step should take some milliseconds at
 * most. Between the questions it costs one subtraction.
 */
struct fathom_pace {
	struct fathom *session; /* NULL: nobody is asked, as in tests */
	uint64_t step;
	uint64_t left; /* of the work before the next question */
};

static inline struct fathom_pace fathom_pace_init(struct fathom *session, uint64_t step)
{
	const bool asks = session && session->progress;

	return (struct fathom_pace){ session, step, asks ? step : UINT64_MAX };
}

/* Asks; for fathom_keeps_pace(). */
bool fathom_pace_ask(struct fathom_pace *pace);

/* Counts one piece of work; returns false when the call is to end soon, with whatever error. */
static inline bool fathom_keeps_pace(struct fathom_pace *pace)
{
	return --pace->left || fathom_pace_ask(pace);
}

/* Returns whether this thread's call was given up. */
bool fathom_is_cancelled(struct fathom *session);

/*
 * Runs tasks as fathom_pool_run() does, and asks before those that this thread runs, and while it
 * waits for the other threads. When the call is given up no more are begun: what they would have
 * made is not there.
 */
void fathom_run_asking(struct fathom *session, enum fathom_phase phase, unsigned threads, size_t n,
		       fathom_task_fn *fn, void *data);

#endif
