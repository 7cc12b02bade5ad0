/* SPDX-License-Identifier: MIT */
#include "host/hook/gate.h"

#include <stdint.h>
#include <time.h>

#include "host/base/clock.h"
#include "host/hook/dispatch.h"

/* How long threads may stay inside, and how often one looks. */
#define PATIENCE_NS INT64_C(10000000000)
#define LOOK_NS     20000

/* Stacks and thread-local storage of threads are multiples of pages apart. */
#define PAGE_BITS 12

FATHOM_IN_HOOK static _Atomic long *lane(struct fathom_gate *g, const void *thread)
{
	const uint64_t hash = ((uintptr_t)thread >> PAGE_BITS) * UINT64_C(0x9e3779b97f4a7c15);

	return &g->lanes[hash >> 60].inside;
}

_Static_assert(FATHOM_GATE_LANES == 1 << (64 - 60), "lane() takes that many bits");

FATHOM_IN_HOOK struct fathom_gate *fathom_gate_enter(_Atomic(struct fathom_gate *) *of,
						     const void *thread)
{
	struct fathom_gate *g = atomic_load(of);

	if (!g)
		return NULL;
	atomic_fetch_add(lane(g, thread), 1);
	/* The thread that removes the hook clears *of before it looks at the lanes. */
	if (atomic_load(of) == g)
		return g;
	fathom_gate_leave(g, thread);
	return NULL;
}

FATHOM_IN_HOOK void fathom_gate_leave(struct fathom_gate *g, const void *thread)
{
	atomic_fetch_sub(lane(g, thread), 1);
}

bool fathom_gate_drain(struct fathom_gate *g)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	const int64_t end = fathom_now_ns() + PATIENCE_NS;

	for (int i = 0; i < FATHOM_GATE_LANES; i++) {
		while (atomic_load(&g->lanes[i].inside)) {
			if (fathom_now_ns() >= end)
				return false;
			nanosleep(&pause, NULL);
		}
	}
	return true;
}

void fathom_gate_after_fork(struct fathom_gate *g, const void *thread, bool inside)
{
	for (int i = 0; i < FATHOM_GATE_LANES; i++)
		atomic_store(&g->lanes[i].inside, 0);
	if (inside)
		atomic_store(lane(g, thread), 1);
}
