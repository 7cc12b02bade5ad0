/* SPDX-License-Identifier: MIT */
/*
 * Collapsed stacks, as Brendan Gregg's flamegraph.pl and its relatives read them: a line for each
 * path,
 *
 *	THREAD;FUNCTION;FUNCTION WEIGHT
 *
 * sorted by path, with the nanoseconds spent in the path itself; or, if no returns were recorded,
 * its calls. Paths without weight are left out. Names of threads and functions have `:` for `;`,
 * which would part them. If events were lost, a path of their own says how many.
 *
 * The size of this format grows with the square of the depth. Below MOST_DEEP levels, calls count
 * for the one of that level which they are within. "[...]" stands for callers that are not known.
 */
#include "host/events/call_paths.h"
#include "host/events/escape.h"

#define MOST_DEEP 1024

/* The name of the path that stands for events that were lost, of whatever thread. */
#define LOST "[lost]"

/* The line that is being made: the path of a call and of all that it is within. */
struct line {
	struct fathom_bytes_array text;
	size_t end[MOST_DEEP + 1]; /* bytes of text up to each level */
};

static const char *instead(uint32_t point)
{
	return point == ';' ? ":" : NULL;
}

static const struct fathom_escape escape = { "\\", instead };

/* Weighs all paths: in mark. */
static void weigh(struct fathom_call_paths *p)
{
	for (size_t i = 0; i < p->paths.n; i++) {
		struct fathom_call_path *path = &p->paths.items[i];

		path->mark = p->has_times ? fathom_call_path_self(path) : path->calls;
	}
	for (size_t i = p->paths.n; i--;)
		if (p->paths.items[i].depth > MOST_DEEP)
			p->paths.items[p->paths.items[i].parent].mark += p->paths.items[i].mark;
}

/*
 * Appends the name of @path to @line, cut after its parent. The name is escaped in what @w has
 * collected, and taken from there.
 */
static void extend(struct fathom_trace_writer *w, struct line *line,
		   const struct fathom_call_paths *p, const struct fathom_call_path *path)
{
	const size_t begin = w->out.n;
	size_t n;

	line->text.n = path->depth ? line->end[path->depth - 1] : 0;
	fathom_writer_str(w, path->depth ? ";" : "");
	fathom_escape_name(w, &escape, fathom_call_path_name(p, path));
	n = w->out.n - begin;
	w->out.n = begin;
	if (w->no_memory || !fathom_array_room(&line->text, n)) {
		w->no_memory = true;
		return;
	}
	memcpy(line->text.items + line->text.n, w->out.items + begin, n);
	line->text.n += n;
	line->end[path->depth] = line->text.n;
}

static void end(struct fathom_trace_writer *w, const struct fathom_trace_result *result)
{
	struct fathom_call_paths *p = fathom_call_paths_finish(w, FATHOM_PATHS_BY_NAME);
	struct line line = { .text = { .n = 0 } };

	(void)result;
	if (!p)
		return;
	weigh(p);
	for (uint32_t i = p->first; i != FATHOM_PATH_NONE && !w->no_memory;
	     i = fathom_call_paths_next(p, i)) {
		const struct fathom_call_path *path = &p->paths.items[i];

		if (path->depth > MOST_DEEP)
			continue;
		extend(w, &line, p, path);
		if (!path->mark)
			continue;
		fathom_writer_bytes(w, line.text.items, line.text.n);
		fathom_writer_str(w, " ");
		fathom_writer_dec(w, path->mark);
		fathom_writer_str(w, "\n");
		fathom_writer_pass_on(w);
	}
	if (w->lost) {
		fathom_writer_str(w, LOST " ");
		fathom_writer_dec(w, w->lost);
		fathom_writer_str(w, "\n");
	}
	fathom_array_free(&line.text);
}

const struct fathom_writer_format fathom_writer_collapsed = {
	fathom_call_paths_begin, fathom_call_paths_event, end, fathom_call_paths_free, false,
};
