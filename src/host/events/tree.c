/* SPDX-License-Identifier: MIT */
/*
 * Paths of calls as a tree.
 *
 * For people, a line for each path, indented by two columns a level, below a line for each name of
 * threads: the calls, and, if returns were recorded, the nanoseconds from the begin of these calls
 * to their end, with and without those of the next level. What took longest comes first; else, what
 * was called most. Below MOST_INDENTED levels the indentation stays, and the depth stands
 * before the name.
 *
 * "[...]" stands for callers that are not known; its own calls are 0.
 *
 * As JSON Lines, an object for each path in the same order:
 *
 *	{"id":1,"parent":0,"thread":"demo","depth":1,"function":"parse",
 *	 "calls":2,"total_ns":500,"self_ns":200}
 *
 * `id` counts the lines from 0; `parent` is the id of the path without its last function, null at
 * depth 0. The times are null if no returns were recorded. {"lost":N} stands after them if events
 * were lost. Paths are not spelled out: a recursion of a million levels would take a million
 * million names.
 */
#include "host/events/call_paths.h"
#include "host/events/escape.h"

enum { CALLS_WIDTH = 13, NS_WIDTH = 16 };

/* The deepest indentation, in levels. */
#define MOST_INDENTED 60

static const struct fathom_escape escape = { "\\", NULL };

/* Appends the columns of @path. A thread or a gap is not called, and does nothing itself. */
static void put_numbers(struct fathom_trace_writer *w, const struct fathom_call_paths *p,
			const struct fathom_call_path *path)
{
	if (path->depth && !path->is_gap)
		fathom_escape_number(w, path->calls, CALLS_WIDTH);
	else
		fathom_escape_spaces(w, CALLS_WIDTH);
	if (!p->has_times)
		return;
	fathom_writer_str(w, " ");
	fathom_escape_number(w, path->total_ns, NS_WIDTH);
	fathom_writer_str(w, " ");
	if (path->depth && !path->is_gap)
		fathom_escape_number(w, fathom_call_path_self(path), NS_WIDTH);
	else
		fathom_escape_spaces(w, NS_WIDTH);
}

static void put_line(struct fathom_trace_writer *w, const struct fathom_call_paths *p,
		     const struct fathom_call_path *path)
{
	const bool is_deep = path->depth > MOST_INDENTED;

	put_numbers(w, p, path);
	fathom_escape_spaces(w, 2 + 2 * (is_deep ? MOST_INDENTED : path->depth));
	if (is_deep) {
		fathom_writer_str(w, "(");
		fathom_escape_number(w, path->depth - 1, 0);
		fathom_writer_str(w, ") ");
	}
	fathom_escape_name(w, &escape, fathom_call_path_name(p, path));
	fathom_writer_str(w, "\n");
}

static void end(struct fathom_trace_writer *w, const struct fathom_trace_result *result)
{
	const struct fathom_call_paths *p = fathom_call_paths_finish(w, FATHOM_PATHS_BY_WEIGHT);

	(void)result;
	if (!p)
		return;
	fathom_writer_str(w, p->has_times
				     ? "#       calls         total ns          self ns  path\n"
				     : "#       calls  path\n");
	for (uint32_t i = p->first; i != FATHOM_PATH_NONE && !w->no_memory;
	     i = fathom_call_paths_next(p, i)) {
		const struct fathom_call_path *path = &p->paths.items[i];

		/* A thread may have made no calls. */
		if (path->depth || path->first != FATHOM_PATH_NONE)
			put_line(w, p, path);
		fathom_writer_pass_on(w);
	}
	fathom_writer_lost(w);
}

static void json_number(struct fathom_trace_writer *w, const char *key, bool is_known,
			uint64_t value)
{
	fathom_writer_str(w, key);
	if (is_known)
		fathom_writer_dec(w, value);
	else
		fathom_writer_str(w, "null");
}

static void put_object(struct fathom_trace_writer *w, const struct fathom_call_paths *p,
		       const struct fathom_call_path *path, const char *thread)
{
	const struct fathom_call_path *parent = &p->paths.items[path->parent];

	json_number(w, "{\"id\":", true, path->mark);
	json_number(w, ",\"parent\":", path->depth > 1, parent->mark);
	fathom_writer_str(w, ",\"thread\":");
	fathom_writer_json(w, thread);
	json_number(w, ",\"depth\":", true, path->depth - 1);
	fathom_writer_str(w, ",\"function\":");
	fathom_writer_json(w, fathom_call_path_name(p, path));
	json_number(w, ",\"calls\":", true, path->calls);
	json_number(w, ",\"total_ns\":", p->has_times, path->total_ns);
	json_number(w, ",\"self_ns\":", p->has_times, fathom_call_path_self(path));
	fathom_writer_str(w, "}\n");
}

static void end_json(struct fathom_trace_writer *w, const struct fathom_trace_result *result)
{
	struct fathom_call_paths *p = fathom_call_paths_finish(w, FATHOM_PATHS_BY_WEIGHT);
	const char *thread = "";
	uint64_t id = 0;

	(void)result;
	if (!p)
		return;
	for (uint32_t i = p->first; i != FATHOM_PATH_NONE && !w->no_memory;
	     i = fathom_call_paths_next(p, i)) {
		struct fathom_call_path *path = &p->paths.items[i];

		if (!path->depth) {
			thread = fathom_call_path_name(p, path);
			continue;
		}
		path->mark = id++;
		put_object(w, p, path, thread);
		fathom_writer_pass_on(w);
	}
	fathom_writer_lost_json(w);
}

const struct fathom_writer_format fathom_writer_tree = {
	fathom_call_paths_begin, fathom_call_paths_event, end, fathom_call_paths_free, false,
};

const struct fathom_writer_format fathom_writer_tree_json = {
	fathom_call_paths_begin, fathom_call_paths_event, end_json, fathom_call_paths_free, false,
};
