/* SPDX-License-Identifier: MIT */
/* One pass over the samples adds up what each distinct stack weighs. */
#include "host/profile/report_leaves.h"

#include <string.h>

#include "fathom/stack.h"
#include "host/base/progress.h"
#include "safe/base/error.h"

/* Samples before the caller is asked whether to go on. */
#define SAMPLES_PACE (1 << 18)

struct adding {
	struct fathom_report_leaves *leaves;
	const struct fathom_report_rows *rows;
	struct fathom_key_map by_stack; /* leaves by stack, group, part and stop */
	struct fathom_pace pace;
	bool no_memory;
	bool is_cancelled;
};

/* Numbers of stops, in keys. */
#define STOPS_BITS 4
/* The parts that have a meaning of their own. */
#define PARTS_BITS 3
/* Threads have at most 24 bits: their numbers, and what is beside them of wakers. */
#define OWNER_BITS 25
#define INTERRUPT  ((UINT32_C(1) << OWNER_BITS) - 1)

/* Returns what tells the group of a sample with its node and part: a thread, or a waker. */
static uint32_t owner_of(const struct fathom_report_rows *r, const struct fathom_profile_sample *s)
{
	if (r->groups)
		return s->thread;
	if (!r->wakers)
		return 0;
	return s->waker == FATHOM_PROFILE_INTERRUPT ? INTERRUPT : s->waker;
}

/* Returns the key of @leaf, whose group @owner tells. Nodes have at most 30 bits. */
static uint64_t key_of(const struct fathom_report_leaf *leaf, uint32_t owner)
{
	return (((uint64_t)leaf->node << OWNER_BITS | owner) << PARTS_BITS | leaf->part)
		       << STOPS_BITS |
	       leaf->stop;
}

/* Sets what of a sample's stack a report tells. */
static void set_kind(struct fathom_report_leaf *leaf, const struct fathom_profile_sample *s)
{
	leaf->node = s->node;
	leaf->part = s->part <= FATHOM_PROFILE_RUNNABLE ? s->part : FATHOM_PROFILE_SAMPLED;
	leaf->stop = s->stop < FATHOM_REPORT_STOPS ? s->stop : FATHOM_REPORT_STOPS - 1;
	if (leaf->part == FATHOM_PROFILE_UNSAMPLED)
		leaf->node = 0;
	if (leaf->node)
		return;
	/* Without a stack: either a row says so, or what it is. */
	if (leaf->part == FATHOM_PROFILE_KERNEL_HIDDEN || leaf->part == FATHOM_PROFILE_UNSAMPLED)
		leaf->stop = FATHOM_STOP_ENTRY;
	else if (leaf->stop == FATHOM_STOP_ENTRY)
		leaf->stop = FATHOM_STOP_NONE;
}

static void add_sums(struct fathom_report_leaves *l, const struct fathom_report_leaf *leaf,
		     const struct fathom_profile_sample *s)
{
	struct fathom_report_sums *sums = &l->sums;

	sums->weight += s->weight;
	sums->hidden += leaf->part == FATHOM_PROFILE_KERNEL_HIDDEN ? s->weight : 0;
	sums->unsampled += leaf->part == FATHOM_PROFILE_UNSAMPLED ? s->weight : 0;
	sums->n_samples++;
	sums->n_stacks += leaf->node != 0;
	sums->n_whole += leaf->node && leaf->stop == FATHOM_STOP_ENTRY;
	l->squares += (double)s->weight * (double)s->weight;
}

bool fathom_report_is_within(const struct fathom_report_options *o, uint64_t ns)
{
	return ns >= o->from_ns && (!o->to_ns || ns < o->to_ns);
}

bool fathom_report_is_asked(const struct fathom_report_options *o, uint8_t part)
{
	return o->time == FATHOM_REPORT_WALL ||
	       fathom_profile_is_wait(part) == (o->time == FATHOM_REPORT_WAITING);
}

void fathom_report_leaf_of(const struct fathom_report_rows *r,
			   const struct fathom_profile_sample *s, struct fathom_report_leaf *ret)
{
	*ret = (struct fathom_report_leaf){ .weight = s->weight, .n = 1 };
	set_kind(ret, s);
	ret->group = fathom_report_group_of(r, s, ret->part);
}

/* Adds a sample to its leaf. Returns 1 to end. */
static int add_sample(void *data, const struct fathom_profile_sample *s)
{
	struct adding *a = data;
	const struct fathom_report_rows *r = a->rows;
	struct fathom_report_leaf leaf;
	uint32_t *number;

	if (!fathom_keeps_pace(&a->pace)) {
		a->is_cancelled = true;
		return 1;
	}
	if (!fathom_report_is_within(r->options, s->ns) ||
	    !fathom_report_is_asked(r->options, s->part))
		return 0;
	fathom_report_leaf_of(r, s, &leaf);
	add_sums(a->leaves, &leaf, s);
	leaf.weight = leaf.n = 0;
	number = fathom_key_map_at(&a->by_stack, key_of(&leaf, owner_of(r, s)));
	if (number && *number == FATHOM_KEY_NEW && fathom_array_push(a->leaves, leaf))
		*number = (uint32_t)a->leaves->n - 1;
	if (!number || *number == FATHOM_KEY_NEW) {
		a->no_memory = true;
		return 1;
	}
	a->leaves->items[*number].weight += s->weight;
	a->leaves->items[*number].n++;
	return 0;
}

fathom_err fathom_report_check_time(const struct fathom_profile *profile, uint32_t time,
				    struct fathom_errinfo *reterr)
{
	if (time > FATHOM_REPORT_WALL)
		return fathom_fail_options(reterr);
	if (time == FATHOM_REPORT_WALL && strcmp(profile->info.unit, "ns") != 0)
		return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
				   "the profile counts no nanoseconds on a processor: processor "
				   "time and waits have no sum");
	return FATHOM_OK;
}

fathom_err fathom_report_leaves_init(struct fathom_report_leaves *l,
				     const struct fathom_report_rows *rows,
				     struct fathom_errinfo *reterr)
{
	const struct fathom_profile *p = rows->profile;
	struct adding a = { .leaves = l,
			    .rows = rows,
			    .pace = fathom_pace_init(p->session, SAMPLES_PACE) };
	fathom_err err;

	(void)fathom_goes_on(p->session, FATHOM_PHASE_READ, 0, 0);
	err = fathom_profile_each_sample(p, add_sample, &a, reterr);
	fathom_key_map_deinit(&a.by_stack);
	if (p->info.has_unknown_ends)
		l->sums.n_whole = 0;
	if (err)
		return err;
	if (a.is_cancelled)
		return fathom_fail(reterr, FATHOM_E_CANCELLED, "", 0, "the caller has given it up");
	return a.no_memory ? fathom_fail_memory(reterr) : FATHOM_OK;
}

void fathom_report_leaves_deinit(struct fathom_report_leaves *l)
{
	fathom_array_free(l);
}
