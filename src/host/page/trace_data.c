/* SPDX-License-Identifier: MIT */
/*
 * Traces as pages: each call is a sample with a begin, whose node is the path of calls that it is
 * in. When calls end, open_calls.h says; callers that are not known are a node "[...]".
 */
#include <inttypes.h>
#include <stdlib.h>

#include "host/base/memory.h"
#include "host/events/open_calls.h"
#include "host/events/syscall_text.h"
#include "host/events/writer.h"
#include "host/page/viewer_data.h"
#include "host/profile/in_memory.h"

/* The most bytes that a page may take while it is made: a writer has no session with a budget. */
#define BUDGET ((uint64_t)2 << 30)

/* The name of what stands for callers that are not known. */
#define GAP "[...]"

/* How calls have ended. The page has the first three. */
enum {
	HAS_RETURNED,
	UNRECORDED, /* the next call says that it has */
	NEVER,      /* before its thread ended, or the trace */
	NEVER_SYSCALL
};

struct trace_page {
	struct fathom_page_data data;
	struct fathom_memory memory;
	struct fathom_open_calls open;
	struct fathom_key_map by_number; /* functions of the page, by their number in the trace */
	struct fathom_key_map processes; /* their names, by number: texts */
	struct fathom_bytes_array kinds; /* of functions of the page */
	const struct fathom_trace_event *event; /* that is taken; NULL: the trace is over */
	uint64_t n_calls;
	bool has_exits; /* of functions */
	bool has_times; /* of functions or system calls */
};

/* Returns the number in the page of a function of @kind. */
static uint32_t add_function(struct trace_page *p, const char *name, const char *linkage_name,
			     const char *module, uint32_t kind)
{
	const struct fathom_page_function f = { .name = name,
						.linkage_name = linkage_name,
						.module = module,
						.module_key =
							fathom_page_text(&p->data.texts, module),
						.kind = kind };
	const uint32_t number = fathom_page_function(&p->data, &f);

	if (number == p->kinds.n && !fathom_array_push(&p->kinds, (char)kind))
		p->data.no_memory = true;
	return number;
}

static bool is_syscall(const struct fathom_trace_function *f)
{
	return !strcmp(f->module, FATHOM_SYSCALL_MODULE);
}

static uint32_t function_of(struct trace_page *p, const struct fathom_trace_function *f)
{
	uint32_t *number = fathom_key_map_at(&p->by_number, f->number);

	if (!number) {
		p->data.no_memory = true;
		return 0;
	}
	if (*number == FATHOM_KEY_NEW)
		*number = add_function(p, f->name, f->linkage_name, f->module,
				       is_syscall(f) ? FATHOM_PROFILE_MODULE_KERNEL
						     : FATHOM_PROFILE_MODULE_FILE);
	return *number;
}

static void begin_thread(void *data, struct fathom_open_thread *t)
{
	struct trace_page *p = data;
	struct fathom_page_texts *texts = &p->data.texts;
	uint32_t *process = fathom_key_map_at(&p->processes, (uint32_t)t->pid);

	if (!process) {
		p->data.no_memory = true;
		return;
	}
	/* The main thread names its process, until it is known any other one does. */
	if (*process == FATHOM_KEY_NEW || t->pid == t->tid)
		*process = fathom_page_text(texts, t->name);
	t->mark = (uint32_t)p->data.columns[FATHOM_PAGE_THREAD_PID].n;
	if (!texts->no_memory)
		fathom_page_thread(&p->data, 0, t->pid, t->tid, t->name,
				   texts->names.items[*process].text);
}

static uint32_t gap_of(struct trace_page *p, uint32_t parent)
{
	return fathom_page_child(&p->data.tree, parent,
				 add_function(p, GAP, NULL, NULL, FATHOM_PAGE_NO_CODE));
}

/* Returns the node that call @c begins below. */
static uint32_t parent_of(struct trace_page *p, const struct fathom_open_call *c)
{
	switch (c->parent) {
	case FATHOM_TRACE_PARENT_DIRECT:
		return c[-1].mark;
	case FATHOM_TRACE_PARENT_GAP:
		return gap_of(p, c[-1].mark);
	default:
		return c->is_outermost ? 0 : gap_of(p, 0);
	}
}

static void begin_call(void *data, const struct fathom_open_thread *t, struct fathom_open_call *c,
		       const struct fathom_trace_event *e)
{
	struct trace_page *p = data;

	(void)t;
	c->count = e->count < UINT32_MAX ? (uint32_t)e->count : UINT32_MAX;
	c->mark = fathom_page_child(&p->data.tree, parent_of(p, c), function_of(p, e->function));
	p->data.tree.items[c->mark].weights[1] += c->count;
	p->n_calls += c->count;
}

static uint8_t kind_of(const struct trace_page *p, uint32_t node)
{
	const uint32_t function = p->data.tree.items[node].function;

	return function < p->kinds.n ? (uint8_t)p->kinds.items[function] : 0;
}

/* Returns how @c, which ends by the event that is taken, has ended. */
static uint8_t outcome_of(const struct trace_page *p, const struct fathom_open_call *c)
{
	const struct fathom_trace_event *e = p->event;

	if (e && e->type == FATHOM_TRACE_RETURN && e->depth == c->depth)
		return HAS_RETURNED;
	if (e && (e->type == FATHOM_TRACE_RETURN || e->type == FATHOM_TRACE_CALL))
		return UNRECORDED;
	return kind_of(p, c->mark) == FATHOM_PROFILE_MODULE_KERNEL ? NEVER_SYSCALL : NEVER;
}

/* Takes @ns off the call that the one of @node is within: sums of nodes are what they took. */
static void take_off(struct trace_page *p, uint32_t node, uint64_t ns)
{
	struct fathom_page_node *nodes = p->data.tree.items;
	uint32_t up = nodes[node].parent;

	while (up && kind_of(p, up) == FATHOM_PAGE_NO_CODE)
		up = nodes[up].parent;
	if (up)
		nodes[up].weights[0] -= ns;
}

static void end_call(void *data, const struct fathom_open_thread *t,
		     const struct fathom_open_call *c, uint64_t ns)
{
	struct trace_page *p = data;
	const struct fathom_page_sample call = { .ns = t->ns,
						 .weight = ns,
						 .begin = c->ns,
						 .thread = t->mark,
						 .node = c->mark,
						 .n = c->count,
						 .part = outcome_of(p, c) };

	if (!c->mark)
		return;
	p->data.tree.items[c->mark].weights[0] += ns;
	take_off(p, c->mark, ns);
	if (t->ns > p->data.samples.duration)
		p->data.samples.duration = t->ns;
	fathom_page_samples_add(&p->data.samples, &call);
}

static const struct fathom_open_calls_user user = { begin_thread, begin_call, end_call };

/* Returns whether all that was taken has found room. */
static bool is_fine(const struct trace_page *p)
{
	return !fathom_page_data_check(&p->data, NULL);
}

static void begin(struct fathom_trace_writer *w)
{
	struct trace_page *p = calloc(1, sizeof *p);

	w->state = p;
	w->no_memory |= !p;
	if (!p)
		return;
	p->memory.budget = BUDGET;
	p->open = (struct fathom_open_calls){ .user = &user, .data = p };
	p->data.tree.memory = p->data.samples.memory = &p->memory;
	p->data.samples.most = FATHOM_PAGE_SAMPLES;
	p->data.samples.are_calls = true;
	fathom_page_tree_init(&p->data.tree);
	w->no_memory |= !is_fine(p);
}

static void event(struct fathom_trace_writer *w, const struct fathom_trace_event *e)
{
	struct trace_page *p = w->state;

	p->event = e;
	if (e->type == FATHOM_TRACE_RETURN) {
		p->has_exits |= !p->has_exits && !is_syscall(e->function);
		p->has_times |= e->duration_ns != 0;
	}
	if (e->ns > p->data.samples.duration)
		p->data.samples.duration = e->ns;
	w->no_memory |= !fathom_open_calls_take(&p->open, e) || !is_fine(p);
}

/* Numbers outcomes as the page has them: without returns it is not known which calls had none. */
static void set_outcomes(struct trace_page *p)
{
	for (size_t i = 0; i < p->data.samples.n; i++) {
		uint8_t *part = &p->data.samples.items[i].part;

		if (*part == NEVER_SYSCALL)
			*part = NEVER;
		else if (*part == NEVER && !p->has_exits)
			*part = UNRECORDED;
	}
}

/* Siblings are sorted by their calls then: how long these took is not known. */
static void weigh_by_calls(struct trace_page *p)
{
	for (size_t i = 0; i < p->data.tree.n; i++)
		p->data.tree.items[i].weights[0] = p->data.tree.items[i].weights[1];
}

static void put_facts(struct trace_page *p, const struct fathom_trace_writer *w)
{
	size_t running = 0;

	for (size_t i = 0; i < p->open.threads.n; i++)
		running += !p->open.threads.items[i].is_over && p->open.threads.items[i].tid;
	fathom_page_fact(&p->data, 0, "kind", "trace");
	fathom_page_fact(&p->data, 0, "unit", "ns");
	fathom_page_fact(&p->data, 0, "calls", "%" PRIu64, p->n_calls);
	fathom_page_fact(&p->data, 0, "duration", "%" PRIu64, p->data.samples.duration);
	fathom_page_fact(&p->data, 0, "exits", "%u", p->has_exits);
	fathom_page_fact(&p->data, 0, "times", "%u", p->has_times);
	fathom_page_fact(&p->data, 0, "running", "%zu", running);
	fathom_page_fact(&p->data, 0, "lost", "%" PRIu64, w->lost);
	fathom_page_fact(&p->data, 0, "slice", "%" PRIu64, p->data.samples.slice);
}

static void end(struct fathom_trace_writer *w, const struct fathom_trace_result *result)
{
	struct trace_page *p = w->state;
	fathom_err err;

	(void)result;
	p->event = NULL;
	fathom_open_calls_finish(&p->open);
	set_outcomes(p);
	if (!p->has_times)
		weigh_by_calls(p);
	put_facts(p, w);
	if (is_fine(p))
		fathom_page_data_end(&p->data);
	w->no_memory |= !is_fine(p);
	if (w->no_memory)
		return;
	err = fathom_page_data_write(&p->data, w->write, w->data, NULL);
	w->no_memory |= err == FATHOM_E_MEMORY;
	w->has_failed |= err && err != FATHOM_E_MEMORY;
}

static void free_state(struct fathom_trace_writer *w)
{
	struct trace_page *p = w->state;

	if (!p)
		return;
	fathom_page_data_deinit(&p->data);
	fathom_open_calls_deinit(&p->open);
	fathom_key_map_deinit(&p->by_number);
	fathom_key_map_deinit(&p->processes);
	fathom_array_free(&p->kinds);
	free(p);
}

const struct fathom_writer_format fathom_writer_page = { begin, event, end, free_state, false };
