/* SPDX-License-Identifier: MIT */
/* What steppers count: how the walks of a program's stack compare with the log of its calls. */
#ifndef COMPARED_H
#define COMPARED_H

#include <fathom/stack.h>
#include <inttypes.h>
#include <stdio.h>

#include "host/stack/walk.h"
#include "../lib/shadow_log.h"

enum { TRUSTS = FATHOM_TRUST_SCAN + 1 };

struct compared {
	uint64_t steps, signals, overwritten, walks, same, entry, ended_early, wrong_walks, frames;
	uint64_t found[TRUSTS]; /* frames, by trust */
	uint64_t wrong[TRUSTS]; /* of these, those that are not the log's */
	uint64_t to_show;       /* walks that differ, which are still to be printed */
};

/*
 * Takes over where handlers have said that they return to: not to where the signal was, but to its
 * caller. Returns false if they have not said all of it yet.
 */
static inline bool take_changes(struct log *log, read_word_fn *read_word, const void *data)
{
	for (size_t i = 0; i < log->n; i++) {
		struct log_entry *e = &log->items[i];
		/* The stack pointer is saved before the pc, on x86-64 and aarch64. */
		const uint64_t pc = e->saved ? read_word(data, e->saved) : e->pc;
		const uint64_t sp = e->saved ? read_word(data, e->saved - 8) : e->sp;

		if (pc == e->pc && sp == e->sp)
			continue;
		if (!i || e[-1].pc != pc || e[-1].sp != sp)
			return false;
		e[-1] = (struct log_entry){ pc, sp, true, false, e->saved, false, 0 };
		memmove(e, e + 1, (--log->n - i) * sizeof *e);
	}
	return true;
}

/* Prints the walk @w of a thread at @pc and @sp beside @log. */
static inline void print_walk(struct compared *c, const struct log *log,
			      const struct fathom_walk *w, uint64_t pc, uint64_t sp,
			      const char *what)
{
	const size_t n = w->frames->n;

	if (!c->to_show)
		return;
	c->to_show--;
	printf("# %s at step %" PRIu64 ", stop %s\n", what, c->steps, fathom_stop_name(w->stop));
	for (size_t i = 0; (i < n || i <= log->n) && i <= 40; i++) {
		const struct fathom_walk_frame *f = i < n ? &w->frames->items[i] : NULL;
		const struct log_entry e = i == 0        ? (struct log_entry){ .pc = pc, .sp = sp }
					   : i <= log->n ? log->items[log->n - i]
							 : (struct log_entry){ 0 };

		printf("#   %zu: %" PRIx64 " %" PRIx64, i, e.pc, e.sp);
		if (f)
			printf(" ours %" PRIx64 " %" PRIx64 " %s%s", f->pc, f->sp,
			       fathom_trust_name(f->trust),
			       f->pc == e.pc && f->sp == e.sp ? "" : "  <--");
		printf("\n");
	}
}

/* Returns whether @f is @e; on aarch64 its stack pointer may be unknown. */
static inline bool is_frame(const struct fathom_walk_frame *f, const struct log_entry *e)
{
	return f->pc == e->pc && (f->sp == e->sp || f->sp == FATHOM_NO_ADDRESS) &&
	       f->is_signal_return == e->is_trampoline &&
	       (f->kind == FATHOM_PC_EXACT) == (e->is_interrupted || e->is_trampoline);
}

/* Compares the walk @w of a thread at @pc and @sp with @log. */
static inline void compare(struct compared *c, const struct log *log, const struct fathom_walk *w,
			   uint64_t pc, uint64_t sp)
{
	const struct fathom_walk_frames *f = w->frames;
	bool is_wrong = false;

	c->walks++;
	for (size_t i = 0; i < f->n && !is_wrong; i++) {
		const struct fathom_walk_frame *frame = &f->items[i];
		const struct log_entry *e = i && i <= log->n ? &log->items[log->n - i] : NULL;

		c->frames++;
		c->found[frame->trust]++;
		is_wrong = i && (!e || !is_frame(frame, e));
		c->wrong[frame->trust] += is_wrong;
	}
	if (is_wrong) {
		c->wrong_walks++;
		print_walk(c, log, w, pc, sp, "wrong");
	} else if (f->n == log->n + 1) {
		c->same++;
		c->entry += w->stop == FATHOM_STOP_ENTRY;
	} else {
		c->ended_early++;
		print_walk(c, log, w, pc, sp, "ended early");
	}
}

static inline void print_compared(const struct compared *c, const struct log *l)
{
	printf("steps %" PRIu64 "\ncalls %" PRIu64 "\nreturns %" PRIu64 "\nsignals %" PRIu64
	       "\nthrown %" PRIu64 "\noverwritten %" PRIu64 "\nlost %" PRIu64 "\n",
	       c->steps, l->calls, l->returns, c->signals, l->thrown, c->overwritten,
	       (uint64_t)l->is_lost);
	printf("walks %" PRIu64 "\nsame %" PRIu64 "\nentry %" PRIu64 "\nended-early %" PRIu64
	       "\nwrong %" PRIu64 "\nframes %" PRIu64 "\n",
	       c->walks, c->same, c->entry, c->ended_early, c->wrong_walks, c->frames);
	for (unsigned i = 0; i < TRUSTS; i++)
		printf("found-%s %" PRIu64 "\nwrong-%s %" PRIu64 "\n", fathom_trust_name(i),
		       c->found[i], fathom_trust_name(i), c->wrong[i]);
}

#endif
