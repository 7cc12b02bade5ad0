/* SPDX-License-Identifier: MIT */
#include "host/events/event_filter.h"

#include <string.h>

/* Calls on one stack that are known at most. */
#define MOST_CALLS (1u << 20)

void fathom_event_filter_init(struct fathom_event_filter *s,
			      const struct fathom_trace_options *options)
{
	s->options = options;
	s->is_on = true;
	s->is_over = false;
	s->n_events = 0;
	for (size_t i = 0; i < options->n_at; i++)
		if (options->at[i].actions & FATHOM_TRACE_AT_START)
			s->is_on = false;
}

void fathom_event_filter_thread_deinit(struct fathom_event_filter_thread *t)
{
	for (size_t i = 0; i < t->stacks.n; i++)
		fathom_array_free(&t->stacks.items[i]);
	fathom_array_free(&t->stacks);
}

void fathom_event_filter_flush(struct fathom_event_filter *s, bool is_all)
{
	if (s->n_events && !s->is_over)
		s->is_over = !s->options->events(s->options->data, s->events, s->n_events);
	s->n_events = 0;
	if (is_all && !s->is_over)
		s->is_over = !s->options->events(s->options->data, s->events, 0);
}

static void put(struct fathom_event_filter *s, const struct fathom_trace_event *e)
{
	s->events[s->n_events++] = *e;
	/* Texts are gone soon. */
	if (s->n_events == FATHOM_EVENT_FILTER_BATCH || e->text || e->syscall)
		fathom_event_filter_flush(s, false);
}

void fathom_event_filter_report_kept(struct fathom_event_filter *s,
				     struct fathom_event_filter_thread *t)
{
	struct fathom_trace_event *kept = fathom_event_filter_kept(t);

	if (kept->count)
		put(s, kept);
	kept->count = 0;
}

void fathom_event_filter_begin_anew(struct fathom_event_filter *s,
				    struct fathom_event_filter_thread *t)
{
	fathom_event_filter_report_kept(s, t);
	fathom_event_filter_thread_deinit(t);
	*t = (struct fathom_event_filter_thread){ 0 };
}

/*
 * Returns whether @e is not deeper than wanted: from the call on whose calls are, if that is asked.
 */
static bool is_shallow(const struct fathom_event_filter *s,
		       const struct fathom_event_filter_thread *t,
		       const struct fathom_trace_event *e)
{
	const uint32_t first = s->options->n_under ? t->under_depth : 0;

	return !s->options->depth || e->depth < first || e->depth - first < s->options->depth;
}

/* Returns whether system call @e is made where calls are wanted. */
static bool has_place(const struct fathom_event_filter *s,
		      const struct fathom_event_filter_thread *t,
		      const struct fathom_trace_event *e)
{
	if (s->options->n_under &&
	    !(t->is_under && e->stack_number == t->under_stack && e->depth > t->under_depth))
		return false;
	return is_shallow(s, t, e);
}

/* Returns the calls on the stack that @e is on; NULL: there are none yet. */
static struct fathom_event_filter_calls *calls_of(const struct fathom_event_filter_thread *t,
						  const struct fathom_trace_event *e)
{
	for (size_t i = 0; i < t->stacks.n; i++)
		if (t->stacks.items[i].stack_number == e->stack_number)
			return &t->stacks.items[i];
	return NULL;
}

/* Returns the last call at @depth of @calls, which may be NULL; NULL: it is not known. */
static const struct fathom_event_filter_call *call_at(const struct fathom_event_filter_calls *calls,
						      uint32_t depth)
{
	size_t i = depth;

	if (!calls || !calls->n)
		return NULL;
	/* Mostly the innermost; where no depth is left out, they stand at their depths. */
	if (calls->items[calls->n - 1].depth == depth)
		return &calls->items[calls->n - 1];
	if (depth >= calls->n || calls->items[depth].depth != depth)
		i = FATHOM_BISECT(calls->n, k, calls->items[k].depth < depth);
	return i < calls->n && calls->items[i].depth == depth ? &calls->items[i] : NULL;
}

/* The parent of an event among those that were reported. */
struct told_parent {
	uint32_t depth;
	uint8_t parent; /* enum fathom_trace_parent */
};

/* Returns that of @e, whose parent is one among all calls, of which its stack has @calls. */
static struct told_parent told_parent_of(const struct fathom_event_filter_calls *calls,
					 const struct fathom_trace_event *e)
{
	const struct fathom_event_filter_call *c =
		e->parent != FATHOM_TRACE_PARENT_UNKNOWN && e->parent_depth < e->depth
			? call_at(calls, e->parent_depth)
			: NULL;

	if (!c)
		return (struct told_parent){ 0, FATHOM_TRACE_PARENT_UNKNOWN };
	if (c->is_told)
		return (struct told_parent){ e->parent_depth, e->parent };
	if (c->told_parent == FATHOM_TRACE_PARENT_UNKNOWN)
		return (struct told_parent){ 0, FATHOM_TRACE_PARENT_UNKNOWN };
	return (struct told_parent){ c->told_depth, FATHOM_TRACE_PARENT_GAP };
}

/* Makes the parent of @e, which is among all calls, that among those that were reported. */
static void set_told_parent(struct fathom_trace_event *e, struct told_parent p)
{
	e->parent = p.parent;
	e->parent_depth = p.depth;
}

void fathom_event_filter_report(struct fathom_event_filter *s, struct fathom_event_filter_thread *t,
				const struct fathom_trace_event *e)
{
	struct fathom_trace_event told = *e;

	if (e->syscall && !has_place(s, t, e))
		return;
	fathom_event_filter_report_kept(s, t);
	set_told_parent(&told, told_parent_of(calls_of(t, e), e));
	if (s->is_on || (e->type != FATHOM_TRACE_SIGNAL && !e->syscall))
		put(s, &told);
}

/* Returns whether @e is within a call whose calls are wanted; it may begin or end one. */
static bool is_under(struct fathom_event_filter_thread *t, const struct fathom_trace_event *e,
		     bool is_wished)
{
	if (t->is_under && e->stack_number == t->under_stack && e->depth <= t->under_depth)
		t->is_under = false;
	if (t->is_under || !is_wished)
		return t->is_under;
	/* The return of the function whose calls are wanted is the end of them. */
	if (e->type == FATHOM_TRACE_CALL) {
		t->is_under = true;
		t->under_depth = e->depth;
		t->under_stack = e->stack_number;
	}
	return true;
}

static bool is_wanted(const struct fathom_event_filter *s, struct fathom_event_filter_thread *t,
		      const struct fathom_trace_event *e, uint8_t selection)
{
	if (s->options->n_under && !is_under(t, e, selection & FATHOM_SELECT_UNDER))
		return false;
	return is_shallow(s, t, e);
}

/* Notes call @e, which is told of or not; makes its parent one that was reported. */
static void enter(struct fathom_event_filter_thread *t, struct fathom_trace_event *e, bool is_told)
{
	const struct fathom_event_filter_calls fresh = { .stack_number = e->stack_number };
	struct fathom_event_filter_calls *calls = calls_of(t, e);
	struct fathom_event_filter_call *call;
	struct told_parent parent;

	if (!calls && fathom_array_push(&t->stacks, fresh))
		calls = &t->stacks.items[t->stacks.n - 1];
	while (calls && calls->n && calls->items[calls->n - 1].depth >= e->depth)
		calls->n--;
	parent = told_parent_of(calls, e);
	if (calls && calls->n < MOST_CALLS && fathom_array_room(calls, 1)) {
		call = &calls->items[calls->n++];
		call->function = e->function;
		call->depth = e->depth;
		call->parent_depth = e->parent_depth;
		call->parent = e->parent;
		call->told_depth = parent.depth;
		call->told_parent = parent.parent;
		call->is_told = is_told;
	}
	if (is_told)
		set_told_parent(e, parent);
}

void fathom_event_filter_pass_over(struct fathom_event_filter_thread *t,
				   struct fathom_trace_event *e)
{
	if (e->type == FATHOM_TRACE_CALL)
		enter(t, e, false);
}

/* Reports the calls that @e, which was noted, is known to be within. */
static void tell_callers(struct fathom_event_filter *s, const struct fathom_event_filter_thread *t,
			 const struct fathom_trace_event *e)
{
	const struct fathom_event_filter_calls *calls = calls_of(t, e);
	const struct fathom_event_filter_call *c = call_at(calls, e->depth);
	struct fathom_trace_event caller = *e;

	caller.type = FATHOM_TRACE_CALLER;
	caller.actions = 0;
	caller.parent = FATHOM_TRACE_PARENT_UNKNOWN;
	caller.parent_depth = 0;
	while (c && c->parent != FATHOM_TRACE_PARENT_UNKNOWN && c->parent_depth < caller.depth) {
		caller.depth = c->parent_depth;
		c = call_at(calls, caller.depth);
		if (!c)
			break;
		caller.function = c->function;
		put(s, &caller);
	}
}

/* Reports a call that something is to be done at, which was noted. */
static void take_special(struct fathom_event_filter *s, struct fathom_event_filter_thread *t,
			 const struct fathom_trace_event *e, uint8_t selection)
{
	struct fathom_trace_event special = *e;

	special.actions = selection & (uint8_t)~FATHOM_SELECT_UNDER;
	s->is_on |= (selection & FATHOM_TRACE_AT_START) != 0;
	fathom_event_filter_report_kept(s, t);
	if (s->is_on)
		put(s, &special);
	if (s->is_on && selection & FATHOM_TRACE_AT_STACK)
		tell_callers(s, t, &special);
	if (selection & FATHOM_TRACE_AT_STOP)
		s->is_on = false;
}

/* Returns whether call @e follows the same one, without another in between. */
static bool repeats(const struct fathom_trace_event *kept, const struct fathom_trace_event *e)
{
	return kept->count && kept->function == e->function && kept->stack == e->stack &&
	       kept->depth == e->depth && kept->stack_number == e->stack_number &&
	       kept->parent == e->parent && kept->parent_depth == e->parent_depth;
}

void fathom_event_filter_take(struct fathom_event_filter *s, struct fathom_event_filter_thread *t,
			      struct fathom_trace_event *e, uint8_t selection)
{
	const bool is_call = e->type == FATHOM_TRACE_CALL;
	const bool is_special = is_call && (selection & ~FATHOM_SELECT_UNDER);
	const bool is_told = is_wanted(s, t, e, selection) &&
			     (s->is_on || (is_call && selection & FATHOM_TRACE_AT_START));

	if (is_call)
		enter(t, e, is_told);
	if (!is_told)
		return;
	if (is_special) {
		take_special(s, t, e, selection);
		return;
	}
	if (!is_call || s->options->flags & FATHOM_TRACE_NO_FOLD) {
		fathom_event_filter_report_kept(s, t);
		put(s, e);
	} else if (repeats(fathom_event_filter_kept(t), e)) {
		fathom_event_filter_kept(t)->count += e->count;
	} else {
		fathom_event_filter_report_kept(s, t);
		if (e != fathom_event_filter_room(t))
			*fathom_event_filter_room(t) = *e;
		t->kept = !t->kept;
	}
}
