/* SPDX-License-Identifier: MIT */
#include "host/events/last_n.h"

#include <stdlib.h>
#include <string.h>

/* Events that are kept at most: so many for each call, and so many more. */
#define MOST_EVENTS  16
#define LEAST_EVENTS 4096

bool fathom_last_n_init(struct fathom_last_n *r, uint32_t n)
{
	*r = (struct fathom_last_n){ .events = calloc(n, sizeof *r->events), .cap = n, .most = n };
	return r->events != NULL;
}

static void free_function(struct fathom_trace_function *f)
{
	if (!f)
		return;
	free((char *)f->name);
	free((char *)f->linkage_name);
	free((char *)f->module);
	free(f);
}

static void free_copies(struct fathom_last_n_event *e)
{
	free(e->text);
	free(e->call);
	free(e->stack);
	e->text = NULL;
	e->call = NULL;
	e->stack = NULL;
}

/* Forgets all events. */
static void clear(struct fathom_last_n *r)
{
	for (uint64_t i = r->first; i < r->n; i++)
		free_copies(&r->events[i % r->cap]);
	r->first = r->n = r->calls = 0;
}

void fathom_last_n_deinit(struct fathom_last_n *r)
{
	clear(r);
	for (size_t i = 0; i < r->functions.n; i++)
		free_function(r->functions.items[i]);
	fathom_array_free(&r->functions);
	fathom_stack_frames_deinit(&r->frames);
	free(r->events);
	*r = (struct fathom_last_n){ .events = NULL };
}

/* Returns a copy of @f; NULL without memory. */
static struct fathom_trace_function *copy_function(const struct fathom_trace_function *f)
{
	struct fathom_trace_function *to = malloc(sizeof *to);

	if (!to)
		return NULL;
	*to = *f;
	to->name = strdup(f->name);
	to->module = strdup(f->module);
	to->linkage_name = f->linkage_name ? strdup(f->linkage_name) : NULL;
	if (to->name && to->module && (to->linkage_name || !f->linkage_name))
		return to;
	free_function(to);
	return NULL;
}

/* Returns the copy of @f, which is made when it is seen first; NULL without memory. */
static const struct fathom_trace_function *function_of(struct fathom_last_n *r,
						       const struct fathom_trace_function *f)
{
	const size_t more = f->number < r->functions.n ? 0 : f->number + 1 - r->functions.n;
	struct fathom_trace_function **known;

	if (more) {
		if (!fathom_array_room(&r->functions, more))
			return NULL;
		memset(r->functions.items + r->functions.n, 0, more * sizeof *r->functions.items);
		r->functions.n += more;
	}
	known = &r->functions.items[f->number];
	if (!*known)
		*known = copy_function(f);
	return *known;
}

/* Returns a copy of @from with what it points to, but for static texts; NULL without memory. */
static struct fathom_trace_syscall *copy_call(const struct fathom_trace_syscall *from)
{
	const size_t n_name = strlen(from->name) + 1;
	struct fathom_trace_syscall *to =
		malloc(sizeof *to + from->record_size + from->text_size + n_name);
	char *bytes = (char *)(to + 1);

	if (!to)
		return NULL;
	*to = *from;
	to->record = memcpy(bytes, from->record, from->record_size);
	bytes += from->record_size;
	to->text = memcpy(bytes, from->text, from->text_size);
	bytes += from->text_size;
	to->name = memcpy(bytes, from->name, n_name);
	return to;
}

/* Returns whether @e is a call; calls that are folded are one. */
static bool is_call(const struct fathom_trace_event *e)
{
	return e->type == FATHOM_TRACE_CALL || e->type == FATHOM_TRACE_SYSCALL;
}

static void drop_oldest(struct fathom_last_n *r)
{
	struct fathom_last_n_event *e = &r->events[r->first++ % r->cap];

	r->calls -= is_call(&e->event);
	free_copies(e);
}

/* Makes the ring larger, for returns and signals between calls; false if it is large enough. */
static bool grow(struct fathom_last_n *r)
{
	const uint64_t cap = 2 * (uint64_t)r->cap;
	struct fathom_last_n_event *events;

	if (cap > MOST_EVENTS * (uint64_t)r->most + LEAST_EVENTS)
		return false;
	events = calloc((size_t)cap, sizeof *events);
	if (!events)
		return false;
	for (uint64_t i = r->first; i < r->n; i++)
		events[i % cap] = r->events[i % r->cap];
	free(r->events);
	r->events = events;
	r->cap = (uint32_t)cap;
	return true;
}

bool fathom_last_n_add(struct fathom_last_n *r, const struct fathom_trace_event *e)
{
	const char *thread = e->thread ? e->thread : "";
	const struct fathom_trace_function *f = e->function ? function_of(r, e->function) : NULL;
	struct fathom_last_n_event copies = {
		.text = e->text ? strdup(e->text) : NULL,
		.call = e->syscall ? copy_call(e->syscall) : NULL,
		.stack = e->call_stack ? fathom_stack_frames_copy(&r->frames, e->call_stack) : NULL,
	};
	struct fathom_last_n_event *to;
	size_t n;

	if ((e->function && !f) || (e->text && !copies.text) || (e->syscall && !copies.call) ||
	    (e->call_stack && !copies.stack)) {
		free_copies(&copies);
		return false;
	}
	if (r->n - r->first == r->cap && !grow(r))
		drop_oldest(r);
	to = &r->events[r->n++ % r->cap];
	n = strnlen(thread, sizeof to->thread - 1);
	*to = copies;
	to->event = *e;
	to->event.function = f;
	memcpy(to->thread, thread, n);
	to->thread[n] = '\0';
	r->calls += is_call(e);
	while (r->n - r->first > 1 &&
	       r->calls - is_call(&r->events[r->first % r->cap].event) >= r->most)
		drop_oldest(r);
	return true;
}

void fathom_last_n_give(struct fathom_last_n *r,
			void (*take)(void *data, const struct fathom_trace_event *e), void *data)
{
	for (uint64_t i = r->first; i < r->n; i++) {
		struct fathom_last_n_event *e = &r->events[i % r->cap];

		e->event.text = e->text;
		e->event.syscall = e->call;
		e->event.call_stack = e->stack;
		e->event.thread = e->thread;
		take(data, &e->event);
	}
	clear(r);
}
