/* SPDX-License-Identifier: MIT */
/*
 * The gate of a hook: counts the threads that are in its hook function, so that whoever removes the
 * hook can wait until there are none. Gates are never freed, and used again: a thread that has read
 * a site's gate and comes late finds another one there, or none, and goes away.
 */
#ifndef FATHOM_HOOK_GATE_H
#define FATHOM_HOOK_GATE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "fathom/hook.h"

/* Threads count in different cache lines. */
#define FATHOM_GATE_LANES 16

struct fathom_gate {
	fathom_hook_fn fn;
	void *data;
	struct fathom_gate *next; /* of those that are not used */
	struct {
		_Alignas(64) _Atomic long inside;
	} lanes[FATHOM_GATE_LANES];
};

/*
 * Enters the gate that *@of leads to, by the lane of @thread, any address of the thread's own.
 * NULL: there is none any more.
 */
struct fathom_gate *fathom_gate_enter(_Atomic(struct fathom_gate *) *of, const void *thread);
void fathom_gate_leave(struct fathom_gate *g, const void *thread);

/* Waits until nobody is inside; no site has it any more. False: somebody was there for too long. */
bool fathom_gate_drain(struct fathom_gate *g);

/* In a child of fork(): the only thread is that of @thread, which is @inside or not. */
void fathom_gate_after_fork(struct fathom_gate *g, const void *thread, bool inside);

#endif
