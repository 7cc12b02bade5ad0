/* SPDX-License-Identifier: MIT */
/*
 * Collapsed stacks, as Brendan Gregg's flamegraph.pl and its relatives read them: a line for each
 * path,
 *
 *	THREAD;FUNCTION;FUNCTION WEIGHT
 *
 * sorted by path, with the nanoseconds spent in the path itself; or, if no returns were recorded,
 * its calls. Paths without weight are left out. If events were lost, a path of their own says how
 * many.
 *
 * Below FATHOM_COLLAPSED_DEEP levels, calls count for the one of that level which they are within.
 * "[...]" stands for callers that are not known.
 */
#include "host/events/call_paths.h"
#include "host/events/collapsed_line.h"

/* The name of the path that stands for events that were lost, of whatever thread. */
#define LOST "[lost]"

/* Weighs all paths: in mark. */
static void weigh(struct fathom_call_paths *p)
{
	for (size_t i = 0; i < p->paths.n; i++) {
		struct fathom_call_path *path = &p->paths.items[i];

		path->mark = p->has_times ? fathom_call_path_self(path) : path->calls;
	}
	for (size_t i = p->paths.n; i--;)
		if (p->paths.items[i].depth > FATHOM_COLLAPSED_DEEP)
			p->paths.items[p->paths.items[i].parent].mark += p->paths.items[i].mark;
}

static void end(struct fathom_trace_writer *w, const struct fathom_trace_result *result)
{
	struct fathom_call_paths *p = fathom_call_paths_finish(w, FATHOM_PATHS_BY_NAME);
	struct fathom_collapsed_line line = { .writer = w };

	(void)result;
	if (!p)
		return;
	weigh(p);
	for (uint32_t i = p->first; i != FATHOM_PATH_NONE && !w->no_memory;
	     i = fathom_call_paths_next(p, i)) {
		const struct fathom_call_path *path = &p->paths.items[i];

		if (path->depth > FATHOM_COLLAPSED_DEEP)
			continue;
		fathom_collapsed_line_name(&line, path->depth, fathom_call_path_name(p, path));
		if (path->mark)
			fathom_collapsed_line_put(&line, path->mark);
	}
	if (w->lost) {
		fathom_writer_str(w, LOST " ");
		fathom_writer_dec(w, w->lost);
		fathom_writer_str(w, "\n");
	}
	fathom_collapsed_line_deinit(&line);
}

const struct fathom_writer_format fathom_writer_collapsed = {
	fathom_call_paths_begin, fathom_call_paths_event, end, fathom_call_paths_free, false,
};
