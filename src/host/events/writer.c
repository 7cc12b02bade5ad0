/* SPDX-License-Identifier: MIT */
#include "host/events/writer.h"

#include <stdlib.h>

#include "fathom/format.h"
#include "safe/base/error.h"

/* Bytes that are collected before they are passed on. */
#define ENOUGH ((size_t)256 << 10)

static const struct fathom_writer_format *const formats[] = {
	[FATHOM_TRACE_FILE] = &fathom_writer_file,
	[FATHOM_TRACE_PERFETTO] = &fathom_writer_perfetto,
	[FATHOM_TRACE_CHROME] = &fathom_writer_chrome,
	[FATHOM_TRACE_COLLAPSED] = &fathom_writer_collapsed,
	[FATHOM_TRACE_DOT] = &fathom_writer_dot,
	[FATHOM_TRACE_TREE] = &fathom_writer_tree,
	[FATHOM_TRACE_TREE_JSON] = &fathom_writer_tree_json,
	[FATHOM_TRACE_TEXT] = &fathom_writer_text,
	[FATHOM_TRACE_JSON] = &fathom_writer_json_lines,
	[FATHOM_TRACE_COUNTS] = &fathom_writer_counts,
	[FATHOM_TRACE_COUNTS_JSON] = &fathom_writer_counts_json,
	[FATHOM_TRACE_TEXT_DURATIONS] = &fathom_writer_text_durations,
	[FATHOM_TRACE_PAGE] = &fathom_writer_page,
};

bool fathom_writer_name(struct fathom_trace_writer *w, const struct fathom_trace_function *f)
{
	const size_t more = f->number < w->functions.n ? 0 : f->number + 1 - w->functions.n;
	struct fathom_writer_function *known;

	if (more) {
		if (!fathom_array_room(&w->functions, more)) {
			w->no_memory = true;
			return false;
		}
		memset(w->functions.items + w->functions.n, 0, more * sizeof *w->functions.items);
		w->functions.n += more;
	}
	known = &w->functions.items[f->number];
	if (known->name)
		return false;
	known->name = strdup(f->name);
	known->module = strdup(f->module);
	w->no_memory |= !known->name || !known->module;
	return !w->no_memory;
}

void fathom_writer_bytes(struct fathom_trace_writer *w, const void *bytes, size_t n)
{
	if (!fathom_array_room(&w->out, n)) {
		w->no_memory = true;
		return;
	}
	memcpy(w->out.items + w->out.n, bytes, n);
	w->out.n += n;
}

void fathom_writer_dec(struct fathom_trace_writer *w, uint64_t value)
{
	char digits[FATHOM_NUMBER_SIZE];

	fathom_writer_bytes(w, digits, fathom_format_dec(digits, value));
}

/* Appends what stands for @point in a JSON string (RFC 8259, section 7), @size bytes at @s. */
static void put_point(struct fathom_trace_writer *w, uint32_t point, const char *s, size_t size)
{
	char escape[FATHOM_JSON_ESCAPE_SIZE];

	if (point == FATHOM_NO_POINT)
		fathom_writer_str(w, "\xef\xbf\xbd");
	else if (point < 0x20 || point == '"' || point == '\\' || fathom_point_is_hidden(point))
		fathom_writer_bytes(w, escape, fathom_point_escape_json(point, escape));
	else
		fathom_writer_bytes(w, s, size);
}

void fathom_writer_json_bytes(struct fathom_trace_writer *w, const char *s, size_t n)
{
	fathom_writer_str(w, "\"");
	while (n) {
		uint32_t point;
		const size_t size = fathom_point_take(s, n, &point);

		put_point(w, point, s, size);
		s += size;
		n -= size;
	}
	fathom_writer_str(w, "\"");
}

void fathom_writer_json(struct fathom_trace_writer *w, const char *s)
{
	fathom_writer_json_bytes(w, s, strlen(s));
}

void fathom_writer_lost(struct fathom_trace_writer *w)
{
	if (!w->lost)
		return;
	fathom_writer_str(w, "# lost: ");
	fathom_writer_dec(w, w->lost);
	fathom_writer_str(w, w->lost == 1 ? " event, which is in no number above\n"
					  : " events, which are in no number above\n");
}

void fathom_writer_lost_json(struct fathom_trace_writer *w)
{
	if (!w->lost)
		return;
	fathom_writer_str(w, "{\"lost\":");
	fathom_writer_dec(w, w->lost);
	fathom_writer_str(w, "}\n");
}

/* Passes on what was collected. */
static void flush(struct fathom_trace_writer *w)
{
	if (w->out.n && !w->has_failed && !w->no_memory)
		w->has_failed = !w->write(w->data, w->out.items, w->out.n);
	w->out.n = 0;
}

void fathom_writer_pass_on(struct fathom_trace_writer *w)
{
	if (w->out.n > ENOUGH)
		flush(w);
}

fathom_err fathom_trace_writer_create(enum fathom_trace_format format, fathom_trace_write_fn write,
				      void *data, struct fathom_trace_writer **ret_writer,
				      struct fathom_errinfo *reterr)
{
	struct fathom_trace_writer *w;

	if ((size_t)format >= sizeof formats / sizeof *formats || !formats[format] || !write ||
	    !ret_writer)
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0, "no such format");
	if (!formats[format]->begin)
		return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
				   "this build does not write that format");
	w = calloc(1, sizeof *w);
	if (!w)
		return fathom_fail_memory(reterr);
	w->format = formats[format];
	w->write = write;
	w->data = data;
	w->format->begin(w);
	if (w->no_memory) {
		fathom_trace_writer_free(w);
		return fathom_fail_memory(reterr);
	}
	*ret_writer = w;
	return FATHOM_OK;
}

fathom_err fathom_trace_writer_keep(struct fathom_trace_writer *w, uint32_t n,
				    struct fathom_errinfo *reterr)
{
	struct fathom_last_n last_n;

	if (!n)
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0, "no events to keep");
	if (!fathom_last_n_init(&last_n, n))
		return fathom_fail_memory(reterr);
	fathom_last_n_deinit(&w->last_n);
	w->last_n = last_n;
	return FATHOM_OK;
}

/* Writes system call @e as the call and the return of a function. */
static void put_as_function(struct fathom_trace_writer *w, const struct fathom_trace_event *e)
{
	struct fathom_trace_event part = *e;

	if (!e->function || e->type != FATHOM_TRACE_SYSCALL)
		return;
	part.type = FATHOM_TRACE_CALL;
	part.ns = e->ns - e->duration_ns;
	part.duration_ns = 0;
	w->format->event(w, &part);
	if (e->syscall->outcome != FATHOM_SYSCALL_HAS_ENDED)
		return;
	part.type = FATHOM_TRACE_RETURN;
	part.ns = e->ns;
	part.duration_ns = e->duration_ns;
	w->format->event(w, &part);
}

static void put_event(struct fathom_trace_writer *w, const struct fathom_trace_event *e)
{
	if (e->type == FATHOM_TRACE_LOST)
		w->lost += e->count;
	if (e->syscall && !w->format->has_system_calls)
		put_as_function(w, e);
	else
		w->format->event(w, e);
}

static void put(void *data, const struct fathom_trace_event *e)
{
	struct fathom_trace_writer *w = data;

	if (w->no_memory)
		return;
	put_event(w, e);
	fathom_writer_pass_on(w);
}

int fathom_trace_writer_tell(struct fathom_trace_writer *w)
{
	if (w->last_n.cap)
		fathom_last_n_give(&w->last_n, put, w);
	flush(w);
	return !w->has_failed && !w->no_memory;
}

/* Keeps an event, and writes what is kept if it says so. */
static void keep(struct fathom_trace_writer *w, const struct fathom_trace_event *e)
{
	w->no_memory |= !fathom_last_n_add(&w->last_n, e);
	if (e->actions & FATHOM_TRACE_AT_DUMP)
		(void)fathom_trace_writer_tell(w);
}

int fathom_trace_writer_take(void *writer, const struct fathom_trace_event *events, size_t n)
{
	struct fathom_trace_writer *w = writer;

	for (size_t i = 0; i < n && !w->no_memory; i++) {
		/* The same text, not an equal one. */
		w->is_same_thread = i && !w->last_n.cap && events[i].tid == events[i - 1].tid &&
				    events[i].pid == events[i - 1].pid &&
				    events[i].thread == events[i - 1].thread;
		if (w->last_n.cap)
			keep(w, &events[i]);
		else
			put_event(w, &events[i]);
	}
	w->is_same_thread = false;
	if (n)
		fathom_writer_pass_on(w);
	else
		flush(w);
	return !w->has_failed && !w->no_memory;
}

fathom_err fathom_trace_writer_finish(struct fathom_trace_writer *w,
				      const struct fathom_trace_result *result,
				      struct fathom_errinfo *reterr)
{
	if (!w->no_memory)
		w->format->end(w, result);
	flush(w);
	if (w->no_memory)
		return fathom_fail_memory(reterr);
	return w->has_failed
		       ? fathom_fail(reterr, FATHOM_E_OS, "", 0, "the trace cannot be written")
		       : FATHOM_OK;
}

void fathom_trace_writer_free(struct fathom_trace_writer *w)
{
	if (!w)
		return;
	w->format->free(w);
	fathom_last_n_deinit(&w->last_n);
	for (size_t i = 0; i < w->functions.n; i++) {
		free(w->functions.items[i].name);
		free(w->functions.items[i].module);
	}
	fathom_array_free(&w->functions);
	fathom_array_free(&w->out);
	free(w);
}
