/* SPDX-License-Identifier: MIT */
#include "cli/trace_last.h"

#include <stdlib.h>
#include <string.h>

#include "cli/common.h"
#include "cli/trace_kept.h"

struct last_event {
	struct fathom_trace_event event;
	char thread[32];
	char *text; /* the event's own */
};

struct trace_last {
	struct trace_kept kept;
	struct last_event *events; /* in a ring */
	uint32_t cap;
	uint64_t n; /* that were added */
};

struct trace_last *trace_last_create(uint32_t n)
{
	struct trace_last *l = must(calloc(1, sizeof *l));

	l->events = must(calloc(n, sizeof *l->events));
	l->cap = n;
	return l;
}

void trace_last_destroy(struct trace_last *l)
{
	if (!l)
		return;
	for (uint32_t i = 0; i < l->cap; i++)
		free(l->events[i].text);
	trace_kept_deinit(&l->kept);
	free(l->events);
	free(l);
}

void trace_last_add(struct trace_last *l, const struct fathom_trace_event *e)
{
	struct last_event *to = &l->events[l->n++ % l->cap];
	const char *thread = e->thread ? e->thread : "";
	const size_t n = strnlen(thread, sizeof to->thread - 1);

	free(to->text);
	to->event = *e;
	to->text = e->text ? must(strdup(e->text)) : NULL;
	memcpy(to->thread, thread, n);
	to->thread[n] = '\0';
	if (e->function)
		to->event.function = trace_kept_function(&l->kept, e->function);
}

void trace_last_give(struct trace_last *l,
		     void (*take)(void *data, const struct fathom_trace_event *e), void *data)
{
	for (uint64_t i = l->n > l->cap ? l->n - l->cap : 0; i < l->n; i++) {
		struct last_event *e = &l->events[i % l->cap];

		e->event.text = e->text;
		e->event.thread = e->thread;
		take(data, &e->event);
	}
	l->n = 0;
}
