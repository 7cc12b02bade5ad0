/* SPDX-License-Identifier: MIT */
/*
 * JSON of the Trace Event Format ("Trace Event Format", by Nat Duca and Dan Sinclair, the document
 * that chrome://tracing links to), as an object with traceEvents: duration events (B and E) for
 * calls, instant events (i) for all that is neither a call nor a return, and metadata events (M)
 * that name threads and processes. Times are microseconds with three decimals.
 *
 * A viewer knows threads by their numbers: one with the number of another that has ended stands in
 * the same row.
 */
#include <stdlib.h>

#include "host/events/instant.h"
#include "host/events/open_calls.h"
#include "host/events/writer.h"

struct chrome {
	struct fathom_trace_writer *w;
	bool has_events;
	struct fathom_open_calls open;
	struct fathom_key_map processes; /* that have a name */
	struct fathom_bytes_array instant;
};

/* Appends "KEY":VALUE after a comma. */
static void put_number(struct fathom_trace_writer *w, const char *key, uint64_t value)
{
	fathom_writer_str(w, ",\"");
	fathom_writer_str(w, key);
	fathom_writer_str(w, "\":");
	fathom_writer_dec(w, value);
}

/* Begins an event of @phase, up to its thread. Numbers of threads are not negative. */
static void put_head(struct chrome *c, const char *phase, const struct fathom_open_thread *t)
{
	fathom_writer_str(c->w, c->has_events ? ",\n{\"ph\":\"" : "{\"ph\":\"");
	fathom_writer_str(c->w, phase);
	fathom_writer_str(c->w, "\"");
	put_number(c->w, "pid", (uint32_t)t->pid);
	put_number(c->w, "tid", (uint32_t)t->tid);
	c->has_events = true;
}

static void put_name(struct fathom_trace_writer *w, const char *name)
{
	fathom_writer_str(w, ",\"name\":");
	fathom_writer_json(w, name);
}

static void put_time(struct fathom_trace_writer *w, uint64_t ns)
{
	const unsigned rest = (unsigned)(ns % 1000);
	const char decimals[] = { '.', (char)('0' + rest / 100), (char)('0' + rest / 10 % 10),
				  (char)('0' + rest % 10) };

	put_number(w, "ts", ns / 1000);
	fathom_writer_bytes(w, decimals, sizeof decimals);
}

/* Writes that the thread or the process, as @what says, has the name of @t. */
static void put_metadata(struct chrome *c, const char *what, const struct fathom_open_thread *t)
{
	put_head(c, "M", t);
	put_name(c->w, what);
	fathom_writer_str(c->w, ",\"args\":{\"name\":");
	fathom_writer_json(c->w, t->name);
	fathom_writer_str(c->w, "}}");
}

static void begin_thread(void *data, struct fathom_open_thread *t)
{
	struct chrome *c = data;
	uint32_t *process = fathom_key_map_at(&c->processes, (uint32_t)t->pid);

	if (!process) {
		c->w->no_memory = true;
		return;
	}
	/* The main thread names its process, until it is known any other one does. */
	if (*process == FATHOM_KEY_NEW || t->pid == t->tid)
		put_metadata(c, "process_name", t);
	*process = 0;
	if (t->tid)
		put_metadata(c, "thread_name", t);
}

static void begin_call(void *data, const struct fathom_open_thread *t,
		       struct fathom_open_call *call, const struct fathom_trace_event *e)
{
	struct chrome *c = data;
	const char *mark = fathom_open_call_mark(call);

	if (mark) {
		put_head(c, "B", t);
		put_time(c->w, call->ns);
		put_name(c->w, mark);
		fathom_writer_str(c->w, "}");
	}
	put_head(c, "B", t);
	put_time(c->w, call->ns);
	put_name(c->w, e->function->name);
	if (e->count > 1) {
		fathom_writer_str(c->w, ",\"args\":{\"count\":");
		fathom_writer_dec(c->w, e->count);
		fathom_writer_str(c->w, "}");
	}
	fathom_writer_str(c->w, "}");
}

static void end_call(void *data, const struct fathom_open_thread *t,
		     const struct fathom_open_call *call, uint64_t ns)
{
	struct chrome *c = data;

	(void)ns;
	for (int n = fathom_open_call_mark(call) ? 2 : 1; n; n--) {
		put_head(c, "E", t);
		put_time(c->w, t->ns);
		fathom_writer_str(c->w, "}");
	}
}

static const struct fathom_open_calls_user user = { begin_thread, begin_call, end_call };

static void put_instant(struct chrome *c, const struct fathom_open_thread *t,
			const struct fathom_trace_event *e)
{
	if (!fathom_instant_name(e, &c->instant)) {
		c->w->no_memory = true;
		return;
	}
	put_head(c, "i", t);
	put_time(c->w, t->ns);
	put_name(c->w, c->instant.items);
	/* Of a thread, or of a process. */
	fathom_writer_str(c->w, t->tid ? ",\"s\":\"t\"}" : ",\"s\":\"p\"}");
}

static void begin_chrome(struct fathom_trace_writer *w)
{
	struct chrome *c = calloc(1, sizeof *c);

	w->state = c;
	w->no_memory |= !c;
	if (!c)
		return;
	c->w = w;
	c->open = (struct fathom_open_calls){ .user = &user, .data = c };
	fathom_writer_str(w, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
}

static void event(struct fathom_trace_writer *w, const struct fathom_trace_event *e)
{
	struct chrome *c = w->state;
	const struct fathom_open_thread *t = fathom_open_calls_take(&c->open, e);

	w->no_memory |= !t;
	if (t && fathom_instant_is(e))
		put_instant(c, t, e);
}

static void end(struct fathom_trace_writer *w, const struct fathom_trace_result *result)
{
	struct chrome *c = w->state;

	(void)result;
	fathom_open_calls_finish(&c->open);
	fathom_writer_str(w, "\n]}\n");
}

static void free_state(struct fathom_trace_writer *w)
{
	struct chrome *c = w->state;

	if (!c)
		return;
	fathom_open_calls_deinit(&c->open);
	fathom_key_map_deinit(&c->processes);
	fathom_array_free(&c->instant);
	free(c);
}

const struct fathom_writer_format fathom_writer_chrome = { begin_chrome, event, end, free_state,
							   false };
