/* SPDX-License-Identifier: MIT */
/*
 * Stacks of a profile, frame by frame: each inlined function is a frame, and what the filters leave
 * out is no part of them. Stacks share what they have in common, as nodes of a profile do. They
 * have the functions that the tree of a report has.
 */
#ifndef FATHOM_EXCHANGE_FRAME_STACKS_H
#define FATHOM_EXCHANGE_FRAME_STACKS_H

#include "host/base/progress.h"
#include "host/exchange/exporting.h"
#include "host/profile/report_leaves.h"

/* A frame, with all that called it. */
struct fathom_frame_stack {
	uint32_t caller; /* stack, which has a lower number; 0: none */
	uint32_t frame;
};

/*
 * All zero but rows, same and pace, there are none but number 0, the empty one. A frame is a
 * number: an index in the frames of rows, or, after these, a row of what has no place.
 */
struct fathom_frame_stacks {
	FATHOM_ARRAY_OF(struct fathom_frame_stack);
	const struct fathom_report_rows *rows;
	const uint32_t *same; /* by frame: the one that stands for it; NULL: itself */
	struct fathom_pace pace;
	struct fathom_key_map children; /* stacks by caller and frame */
	struct fathom_key_map known;    /* stacks by node of the profile and stop */
	struct fathom_u32_array walked; /* nodes under way */
	size_t checked;                 /* stacks that are known to fit the budget */
	bool no_memory;
	bool is_too_much; /* for the session's budget */
	bool is_cancelled;
};

/* Facts about a frame. */
struct fathom_frame_facts {
	const struct fathom_report_row *row;
	uint32_t row_number;
	const struct fathom_profile_location *location; /* NULL: it has no place */
	const struct fathom_frame *debug;               /* NULL: not known */
	uint32_t inline_depth;                          /* 0: not inlined */
};

/* Returns the stack of @leaf; 0 if all of it is left out, or after a failure. */
uint32_t fathom_frame_stacks_of(struct fathom_frame_stacks *s,
				const struct fathom_report_leaf *leaf);
void fathom_frame_stacks_deinit(struct fathom_frame_stacks *s);

/* Returns whether no more stacks can be made. */
static inline bool fathom_frame_stacks_failed(const struct fathom_frame_stacks *s)
{
	return s->no_memory || s->is_too_much || s->is_cancelled;
}
/* Returns the error of a failure, or FATHOM_OK. */
fathom_err fathom_frame_stacks_end(const struct fathom_frame_stacks *s,
				   struct fathom_errinfo *reterr);

/* Returns the number of frames, rows of what has no place among them. */
static inline size_t fathom_frame_count(const struct fathom_report_rows *r)
{
	return r->frames.n + r->n;
}

struct fathom_frame_facts fathom_frame_facts_of(const struct fathom_report_rows *r, uint32_t frame);

/*
 * Appends the name of @row to @to, with its NUL: code without a name is its module in brackets.
 * Returns false without memory.
 */
bool fathom_frame_spell(struct fathom_bytes_array *to, const struct fathom_report_row *row);
bool fathom_frame_spell_text(struct fathom_bytes_array *to, const char *s);

/*
 * Writes @e with threads as groups: makes *@w, *@rows and *@stacks, has @write do the rest, and
 * ends them.
 */
fathom_err fathom_export_threads(const struct fathom_export *e, struct fathom_trace_writer *w,
				 struct fathom_report_rows *rows,
				 struct fathom_frame_stacks *stacks,
				 fathom_err (*write)(void *data, struct fathom_errinfo *reterr),
				 void *data, struct fathom_errinfo *reterr);

#endif
