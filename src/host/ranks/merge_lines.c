/* SPDX-License-Identifier: MIT */
/*
 * Lines of "fathom stack --json --rank=N" (docs/schema/stack.json), a thread each, and of "fathom
 * stack --merge --json" (docs/schema/stack-merge.json).
 */
#include <stdio.h>
#include <string.h>

#include "host/base/json_reader.h"
#include "host/ranks/prefix_tree.h"

/* Bytes of a label that are kept of a function, and of a module. */
enum { MOST_FUNCTION = 4096, MOST_MODULE = 256 };

/* Bytes of a label besides its text, about. */
#define LABEL_BYTES 64

struct reading {
	struct fathom_stack_merge *m;
	struct fathom_merge_line *line;
	struct fathom_json j;
	char type[16];
	char stop[32];
	char reason[64];
	bool has_rank;
	bool has_tid;
	bool is_worker;
	uint64_t n_tids; /* threads with this stack; 0: not said */
	/* Of the frame, or the branch, that is being read. */
	char function[MOST_FUNCTION];
	char module[MOST_MODULE];
	char file[MOST_MODULE];
	bool has_functions; /* labels have those that are inlined there */
};

/*
 * Copies @s up to a NUL; what would divide a label has another character. What has no room is
 * "...".
 */
static void copy(char *to, size_t cap, struct fathom_str s)
{
	static const char end[] = "...";

	(void)snprintf(to, cap, "%.*s", (int)(s.size < cap ? s.size : cap - 1),
		       s.data ? s.data : "");
	if (strlen(to) < s.size && strlen(to) == cap - 1)
		memcpy(to + cap - sizeof end, end, sizeof end);
	for (char *at = to; (at = strchr(at, FATHOM_MERGE_MODULE)) != NULL;)
		*at = '?';
}

/* Copies the last part of the path @s. */
static void copy_name(char *to, size_t cap, struct fathom_str s)
{
	const char *slash = s.size ? memrchr(s.data, '/', s.size) : NULL;
	const size_t before = slash ? (size_t)(slash + 1 - s.data) : 0;

	/* A path that ends with a slash is all that there is. */
	if (before < s.size)
		s = (struct fathom_str){ s.data + before, (uint32_t)(s.size - before) };
	copy(to, cap, s);
}

/* Adds the label of @function in @module, "": none. */
static void add_label(struct reading *r, const char *function, const char *module)
{
	char label[MOST_FUNCTION + MOST_MODULE + 1];
	const size_t before = r->m->labels.n;
	uint32_t number;
	int size;

	size = snprintf(label, sizeof label, "%s%c%s", *function ? function : "??",
			FATHOM_MERGE_MODULE, module);
	number = fathom_name_table_add(&r->m->labels, label);
	r->m->label_bytes += r->m->labels.n > before ? (uint64_t)size + LABEL_BYTES : 0;
	r->j.no_memory |= number == FATHOM_KEY_NEW || !fathom_array_push(&r->line->labels, number);
}

/* Reads the functions at a frame, the innermost first. */
static void read_functions(struct reading *r)
{
	struct fathom_json *j = &r->j;

	if (!fathom_json_enter(j, '[')) {
		fathom_json_skip(j);
		return;
	}
	while (fathom_json_next(j, ']')) {
		char function[MOST_FUNCTION] = "";

		if (!fathom_json_enter(j, '{'))
			fathom_json_refuse(j, "an item of \"frames\" is no object");

		while (fathom_json_next(j, '}')) {
			const struct fathom_str key = fathom_json_key(j);

			if (str_is(key, "function"))
				copy(function, sizeof function, fathom_json_string(j));
			else if (str_is(key, "file"))
				copy_name(r->file, sizeof r->file, fathom_json_string(j));
			else
				fathom_json_skip(j);
		}
		add_label(r, function, "");
		r->has_functions = true;
	}
}

/* Gives the labels from @first on, which are of one frame, its module. */
static void set_modules(struct reading *r, size_t first, const char *module)
{
	const size_t n = r->line->labels.n;

	if (!*module)
		return;
	for (size_t i = first; i < n && !r->j.no_memory; i++) {
		const char *label = r->m->labels.items[r->line->labels.items[i]].text;
		char function[MOST_FUNCTION];

		(void)snprintf(function, sizeof function, "%.*s",
			       (int)strcspn(label, (char[]){ FATHOM_MERGE_MODULE, '\0' }), label);
		add_label(r, function, module);
		r->line->labels.items[i] = r->line->labels.items[r->line->labels.n - 1];
		r->line->labels.n--;
	}
}

/* Reads the frames of a thread, the innermost first. */
static void read_frames(struct reading *r)
{
	struct fathom_json *j = &r->j;

	if (!fathom_json_enter(j, '[')) {
		fathom_json_refuse(j, "\"frames\" is no list");
		return;
	}
	while (fathom_json_next(j, ']')) {
		const size_t first = r->line->labels.n;

		if (!fathom_json_enter(j, '{'))
			fathom_json_refuse(j, "an item of \"frames\" is no object");
		r->function[0] = r->module[0] = r->file[0] = '\0';
		r->has_functions = false;
		while (fathom_json_next(j, '}')) {
			const struct fathom_str key = fathom_json_key(j);

			if (str_is(key, "symbol"))
				copy(r->function, sizeof r->function, fathom_json_string(j));
			else if (str_is(key, "module"))
				copy_name(r->module, sizeof r->module, fathom_json_string(j));
			else if (str_is(key, "frames"))
				read_functions(r);
			else
				fathom_json_skip(j);
		}
		if (!r->has_functions)
			add_label(r, r->function, "");
		/* A script has a file in place of a module. */
		set_modules(r, first, *r->module ? r->module : r->file);
	}
}

/* Counts the items of a list. */
static uint64_t count_items(struct fathom_json *j)
{
	uint64_t n = 0;

	if (!fathom_json_enter(j, '[')) {
		fathom_json_skip(j);
		return 0;
	}
	for (; fathom_json_next(j, ']'); n++)
		fathom_json_skip(j);
	return n;
}

/* Takes a rank. */
static uint32_t take_rank(struct fathom_json *j)
{
	const int64_t rank = fathom_json_is_number(j) ? fathom_json_number(j) : -1;

	if (rank < 0 || rank > INT32_MAX)
		fathom_json_refuse(j, "a rank is no number from 0 to 2147483647");
	return (uint32_t)rank;
}

static void add_range(struct reading *r, uint32_t first, uint32_t last)
{
	const struct fathom_rank_range range = { first, last };

	if (last < first)
		fathom_json_refuse(&r->j, "the ranks of a range are in the wrong order");
	else
		r->j.no_memory |= !fathom_array_push(&r->line->ranges, range);
}

/* Reads ranges of ranks: [[0, 3], [7, 7]]. */
static void read_ranges(struct reading *r)
{
	struct fathom_json *j = &r->j;

	if (!fathom_json_enter(j, '['))
		fathom_json_refuse(j, "\"ranks\" is no list of ranges");
	while (fathom_json_next(j, ']')) {
		uint32_t ends[2] = { 0, 0 };
		size_t n = 0;

		if (!fathom_json_enter(j, '['))
			fathom_json_refuse(j, "\"ranks\" is no list of ranges");
		for (; fathom_json_next(j, ']'); n++) {
			if (n < 2)
				ends[n] = take_rank(j);
			else
				fathom_json_skip(j);
		}
		if (n != 2)
			fathom_json_refuse(j, "a range has other than two ranks");
		else
			add_range(r, ends[0], ends[1]);
	}
}

static uint64_t take_count(struct fathom_json *j)
{
	const int64_t n = fathom_json_is_number(j) ? fathom_json_number(j) : -1;

	if (n < 0)
		fathom_json_refuse(j, "a count is no number, or negative");
	return n < 0 ? 0 : (uint64_t)n;
}

/* Reads member @key of a branch or of all; returns false if it is none of these. */
static bool read_tree_member(struct reading *r, struct fathom_str key)
{
	if (str_is(key, "ranks"))
		read_ranges(r);
	else if (str_is(key, "threads"))
		r->line->n_threads = take_count(&r->j);
	else if (str_is(key, "ends"))
		r->line->n_ends = take_count(&r->j);
	else if (str_is(key, "depth"))
		r->line->depth = take_count(&r->j);
	else if (str_is(key, "function"))
		copy(r->function, sizeof r->function, fathom_json_string(&r->j));
	else if (str_is(key, "module"))
		copy_name(r->module, sizeof r->module, fathom_json_string(&r->j));
	else
		return false;
	return true;
}

/* Reads member @key of a thread; returns false if it is none of these. */
static bool read_thread_member(struct reading *r, struct fathom_str key)
{
	struct fathom_json *j = &r->j;

	if (str_is(key, "rank")) {
		const uint32_t rank = take_rank(j);

		r->has_rank = true;
		add_range(r, rank, rank);
	} else if (str_is(key, "tid")) {
		r->has_tid = true;
		fathom_json_skip(j);
	} else if (str_is(key, "tids")) {
		r->n_tids = count_items(j);
	} else if (str_is(key, "frames")) {
		read_frames(r);
	} else if (str_is(key, "stop")) {
		copy(r->stop, sizeof r->stop, fathom_json_string(j));
	} else if (str_is(key, "reason")) {
		copy(r->reason, sizeof r->reason, fathom_json_string(j));
	} else {
		return false;
	}
	return true;
}

static void read_members(struct reading *r)
{
	struct fathom_json *j = &r->j;

	if (!fathom_json_enter(j, '{'))
		fathom_json_refuse(j, "is no object of JSON");
	while (fathom_json_next(j, '}')) {
		const struct fathom_str key = fathom_json_key(j);

		if (str_is(key, "type"))
			copy(r->type, sizeof r->type, fathom_json_string(j));
		else if (!read_thread_member(r, key) && !read_tree_member(r, key))
			fathom_json_skip(j);
	}
	if (fathom_json_enter(j, '\0') || cur_left(&j->c))
		fathom_json_refuse(j, "has more than an object of JSON");
}

/* Finishes the line of a thread: one whose stack is not whole begins with why. */
static void end_thread(struct reading *r)
{
	struct fathom_merge_line *line = r->line;
	char text[128];

	line->kind = FATHOM_MERGE_THREAD;
	line->n_threads = r->n_tids ? r->n_tids : 1;
	if (!r->has_rank)
		fathom_json_refuse(&r->j,
				   "a thread has no rank: fathom stack --json --rank=N prints one");
	if (!strcmp(r->stop, "entry"))
		return;
	(void)snprintf(text, sizeof text, "[%s: %s]", line->labels.n ? "not complete" : "no stack",
		       *r->stop && strcmp(r->stop, "none") != 0 ? r->stop
		       : *r->reason                             ? r->reason
								: "not known");
	add_label(r, text, "");
}

static void end_line(struct reading *r)
{
	struct fathom_merge_line *line = r->line;

	if (!strcmp(r->type, "ranks")) {
		line->kind = FATHOM_MERGE_ALL;
	} else if (!strcmp(r->type, "node")) {
		line->kind = FATHOM_MERGE_BRANCH;
		line->labels.n = 0;
		add_label(r, r->function, r->module);
		if (!line->depth)
			fathom_json_refuse(&r->j, "the depth of a node is 0");
	} else if (r->has_tid) {
		end_thread(r);
	} else {
		fathom_json_refuse(&r->j, "is no line of fathom stack --json --rank=N or fathom "
					  "stack --merge --json");
	}
}

fathom_err fathom_merge_line_read(struct fathom_stack_merge *m, struct fathom_bytes line,
				  struct fathom_merge_line *ret, struct fathom_errinfo *reterr)
{
	struct reading r = { .m = m, .line = ret };
	fathom_err err = FATHOM_OK;

	fathom_json_init(&r.j, line);
	read_members(&r);
	if (!r.j.wrong && !r.j.no_memory)
		end_line(&r);
	if (r.j.no_memory)
		err = fathom_fail_memory(reterr);
	else if (r.j.wrong)
		err = fathom_fail(reterr, FATHOM_E_FORMAT, "", 0, r.j.wrong);
	fathom_json_deinit(&r.j);
	return err;
}
