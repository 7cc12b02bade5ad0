/* SPDX-License-Identifier: MIT */
#include "host/exchange/timed_samples.h"

#include <stdlib.h>

#include "safe/base/error.h"

/* Samples before their size is compared with the budget. */
#define UNCHECKED 4096

struct collecting {
	struct fathom_timed_samples *all;
	struct fathom_frame_stacks *stacks;
	bool has_waits;
	bool no_memory;
	bool is_too_much;
};

static bool fits(const struct collecting *c, size_t n)
{
	const struct fathom_memory *m = &c->stacks->rows->profile->session->memory;

	/* The array doubles, and its copy is there for a moment. */
	return n < UNCHECKED || n & (n - 1) || fathom_memory_fits(m, 3 * n * sizeof *c->all->items);
}

/* Adds a sample. Returns 1 to end. */
static int add_sample(void *data, const struct fathom_profile_sample *s)
{
	struct collecting *c = data;
	const struct fathom_report_rows *r = c->stacks->rows;
	const bool is_asked = fathom_report_is_asked(r->options, s->part);
	struct fathom_report_leaf leaf;
	struct fathom_timed_sample sample = { .ns = s->ns,
					      .weight = s->weight,
					      .order = (uint32_t)c->all->n,
					      .node = s->node,
					      .is_asked = is_asked };

	if (!fathom_report_is_within(r->options, s->ns) ||
	    (!is_asked && !(c->has_waits && fathom_profile_is_wait(s->part))))
		return 0;
	fathom_report_leaf_of(r, s, &leaf);
	sample.stack = fathom_frame_stacks_of(c->stacks, &leaf);
	sample.thread = leaf.group;
	sample.part = leaf.part;
	c->stacks->is_cancelled |= !fathom_keeps_pace(&c->stacks->pace);
	c->is_too_much |= c->all->n >= UINT32_MAX || !fits(c, c->all->n);
	if (sample.stack && !c->is_too_much)
		c->no_memory |= !fathom_array_push(c->all, sample);
	return c->no_memory || c->is_too_much || fathom_frame_stacks_failed(c->stacks);
}

static int compare_samples(const void *pa, const void *pb)
{
	const struct fathom_timed_sample *a = pa;
	const struct fathom_timed_sample *b = pb;

	return a->thread != b->thread ? u64_compare(a->thread, b->thread)
	       : a->ns != b->ns       ? u64_compare(a->ns, b->ns)
				      : u64_compare(a->order, b->order);
}

fathom_err fathom_timed_samples_init(struct fathom_timed_samples *all,
				     struct fathom_frame_stacks *stacks, bool has_waits,
				     struct fathom_errinfo *reterr)
{
	struct collecting c = { .all = all, .stacks = stacks, .has_waits = has_waits };

	FATHOM_TRY(fathom_profile_each_sample(stacks->rows->profile, add_sample, &c, reterr));
	FATHOM_TRY(fathom_frame_stacks_end(stacks, reterr));
	if (c.is_too_much)
		return fathom_fail_by(reterr, FATHOM_E_LIMIT, FATHOM_CAUSE_BUDGET,
				      "the samples do not fit the memory budget");
	if (c.no_memory)
		return fathom_fail_memory(reterr);
	if (all->n)
		qsort(all->items, all->n, sizeof *all->items, compare_samples);
	return FATHOM_OK;
}

void fathom_timed_samples_deinit(struct fathom_timed_samples *all)
{
	fathom_array_free(all);
}
