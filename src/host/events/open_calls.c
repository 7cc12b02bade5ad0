/* SPDX-License-Identifier: MIT */
#include "host/events/open_calls.h"

#include <stdlib.h>
#include <string.h>

/* Ends the innermost call of @t, after @ns nanoseconds. */
static void end_one(struct fathom_open_calls *o, struct fathom_open_thread *t, uint64_t ns)
{
	const struct fathom_open_call call = t->calls.items[--t->calls.n];

	if (o->user->end)
		o->user->end(o->data, t, &call, ns);
}

/* Ends the calls of @t at @depth, and those that are deeper. */
static void end_from(struct fathom_open_calls *o, struct fathom_open_thread *t, uint32_t depth)
{
	while (t->calls.n && t->calls.items[t->calls.n - 1].depth >= depth)
		end_one(o, t, t->ns - t->calls.items[t->calls.n - 1].ns);
}

/* Names @t as @e says; returns false without memory. */
static bool give_name(struct fathom_open_thread *t, const struct fathom_trace_event *e)
{
	char *name = strdup(e->thread ? e->thread : "");

	if (!name)
		return false;
	free(t->name);
	t->name = name;
	return true;
}

/* Adds a thread with the name and the numbers of @e; returns NULL without memory. */
static struct fathom_open_thread *add(struct fathom_open_calls *o,
				      const struct fathom_trace_event *e)
{
	const struct fathom_open_thread fresh = { .pid = e->pid, .tid = e->tid, .ns = e->ns };
	struct fathom_open_thread *t;

	if (o->threads.n == FATHOM_KEY_NEW || !fathom_array_push(&o->threads, fresh))
		return NULL;
	t = &o->threads.items[o->threads.n - 1];
	if (!give_name(t, e)) {
		o->threads.n--;
		return NULL;
	}
	return t;
}

/* Begins another thread with the numbers of @t; returns false without memory. */
static bool begin_anew(struct fathom_open_calls *o, struct fathom_open_thread *t,
		       const struct fathom_trace_event *e)
{
	end_from(o, t, 0);
	t->is_over = false;
	t->generation++;
	return give_name(t, e);
}

/* Returns whether @e shows that the numbers of @t are those of another thread now. */
static bool is_another(const struct fathom_open_thread *t, const struct fathom_trace_event *e)
{
	/* Lost events of a thread may come after its end. */
	return e->type == FATHOM_TRACE_START ||
	       (t->is_over && (e->type == FATHOM_TRACE_CALL || e->type == FATHOM_TRACE_RETURN));
}

/* Returns the thread of @e; NULL without memory. */
static struct fathom_open_thread *thread_of(struct fathom_open_calls *o,
					    const struct fathom_trace_event *e)
{
	const uint64_t key = (uint64_t)(uint32_t)e->pid << 32 | (uint32_t)e->tid;
	uint32_t *number = fathom_key_map_at(&o->by_id, key);
	const bool is_new = number && *number == FATHOM_KEY_NEW;
	struct fathom_open_thread *t;

	if (!number)
		return NULL;
	t = is_new ? add(o, e) : &o->threads.items[*number];
	if (!t)
		return NULL;
	*number = (uint32_t)(t - o->threads.items);
	if (e->ns > t->ns)
		t->ns = e->ns;
	if (!is_new && !is_another(t, e))
		return t;
	if (!is_new && !begin_anew(o, t, e))
		return NULL;
	if (o->user->thread)
		o->user->thread(o->data, t);
	return t;
}

/* Returns whether the innermost open call of @t is the parent of @e. */
static bool is_parent_last(const struct fathom_open_thread *t, const struct fathom_trace_event *e)
{
	const struct fathom_open_call *last = t->calls.n ? &t->calls.items[t->calls.n - 1] : NULL;

	return last && last->depth == e->parent_depth && last->stack_number == e->stack_number;
}

/* Begins the call of @e; returns false without memory. */
static bool begin_call(struct fathom_open_calls *o, struct fathom_open_thread *t,
		       const struct fathom_trace_event *e)
{
	struct fathom_open_call call = {
		.ns = t->ns, .depth = e->depth, .parent = e->parent, .stack_number = e->stack_number
	};

	end_from(o, t, e->depth);
	if (e->parent != FATHOM_TRACE_PARENT_UNKNOWN && e->parent_depth < e->depth)
		end_from(o, t, e->parent_depth + 1);
	if (!is_parent_last(t, e))
		call.parent = FATHOM_TRACE_PARENT_UNKNOWN;
	o->has_sites |= e->function->address != 0;
	call.is_outermost =
		call.parent == FATHOM_TRACE_PARENT_UNKNOWN && (!e->depth || !o->has_sites);
	if (call.is_outermost)
		end_from(o, t, 0);
	if (t->calls.n == FATHOM_OPEN_CALLS_MAX)
		end_one(o, t, t->ns - t->calls.items[t->calls.n - 1].ns);
	if (!fathom_array_push(&t->calls, call))
		return false;
	if (o->user->begin)
		o->user->begin(o->data, t, &t->calls.items[t->calls.n - 1], e);
	return true;
}

/* Ends the call that @e returns from, if it was recorded, and those that it is in the middle of. */
static void leave(struct fathom_open_calls *o, struct fathom_open_thread *t,
		  const struct fathom_trace_event *e)
{
	if (e->depth < UINT32_MAX)
		end_from(o, t, e->depth + 1);
	if (e->duration_ns && t->calls.n && t->calls.items[t->calls.n - 1].depth == e->depth)
		end_one(o, t, e->duration_ns);
	else
		end_from(o, t, e->depth);
}

const struct fathom_open_thread *fathom_open_calls_take(struct fathom_open_calls *o,
							const struct fathom_trace_event *e)
{
	struct fathom_open_thread *t = thread_of(o, e);

	if (!t)
		return NULL;
	if (e->type == FATHOM_TRACE_CALL && !begin_call(o, t, e))
		return NULL;
	if (e->type == FATHOM_TRACE_RETURN)
		leave(o, t, e);
	if (e->type == FATHOM_TRACE_EXIT) {
		end_from(o, t, 0);
		t->is_over = true;
	}
	return t;
}

void fathom_open_calls_finish(struct fathom_open_calls *o)
{
	for (size_t i = 0; i < o->threads.n; i++)
		end_from(o, &o->threads.items[i], 0);
}

void fathom_open_calls_deinit(struct fathom_open_calls *o)
{
	for (size_t i = 0; i < o->threads.n; i++) {
		free(o->threads.items[i].name);
		fathom_array_free(&o->threads.items[i].calls);
	}
	fathom_array_free(&o->threads);
	fathom_key_map_deinit(&o->by_id);
}
