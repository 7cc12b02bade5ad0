/* SPDX-License-Identifier: MIT */
/* fathom stack --merge: stacks of many ranks as one tree, those of the fewest ranks first. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/json.h"
#include "cli/stack.h"
#include "fathom/stack_merge.h"

/* Columns of text that ranks have at most: what is longer ends in "...". */
#define RANKS_WIDTH 24

/* Blanks before a function at most: what is deeper stands in one column. */
#define MOST_INDENT 100

/* A line of a file, with room for the next one. */
struct line {
	char *text;
	size_t n;
	size_t cap;
};

/*
 * Reads the next line of @f, or of one that is too long its first bytes, more than are added.
 * False: there is none.
 */
static bool next_line(FILE *f, struct line *line)
{
	const size_t most = FATHOM_STACK_MERGE_LINE_MAX + 1;
	int c = 0;

	for (line->n = 0; line->n < most && c != '\n' && (c = getc_unlocked(f)) != EOF;) {
		if (line->n == line->cap) {
			line->cap = line->cap ? 2 * line->cap : 4096;
			line->cap = line->cap < most ? line->cap : most;
			line->text = must(realloc(line->text, line->cap));
		}
		line->text[line->n++] = (char)c;
	}
	return line->n != 0;
}

/* Adds the lines of @f, called @path. False if one is refused, which was said. */
static bool add_lines(struct fathom_stack_merge *m, FILE *f, const char *path)
{
	struct fathom_errinfo info;
	struct line line = { .text = NULL };
	bool is_done = true;

	for (unsigned long number = 1; is_done && next_line(f, &line); number++) {
		char *where = NULL;

		is_done = !fathom_stack_merge_add(m, line.text, line.n, &info);
		if (is_done)
			continue;
		if (asprintf(&where, "%s:%lu", path, number) < 0)
			where = NULL;
		complain(where ? where : path, info.what, NULL);
		free(where);
	}
	if (is_done && ferror(f)) {
		complain(path, strerror(errno), NULL);
		is_done = false;
	}
	free(line.text);
	return is_done;
}

static bool add_file(struct fathom_stack_merge *m, const char *path)
{
	FILE *f = strcmp(path, "-") ? fopen(path, "re") : stdin;
	bool is_done;

	if (!f) {
		complain(path, strerror(errno), NULL);
		return false;
	}
	is_done = add_lines(m, f, path);
	if (f != stdin)
		fclose(f);
	return is_done;
}

static void print_json_ranges(struct out *o, const struct fathom_stack_node *n)
{
	out_str(o, ",\"ranks\":[");
	for (uint32_t i = 0; i < n->n_ranges; i++) {
		out_str(o, i ? ",[" : "[");
		out_dec(o, n->ranges[i].first);
		out_char(o, ',');
		out_dec(o, n->ranges[i].last);
		out_char(o, ']');
	}
	out_char(o, ']');
}

static void print_json(struct out *o, const struct fathom_stack_node *nodes, size_t n)
{
	out_str(o, "{\"type\":\"ranks\"");
	print_json_ranges(o, &nodes[0]);
	json_member_number(o, "n_ranks", nodes[0].n_ranks);
	json_member_number(o, "threads", nodes[0].n_threads);
	out_str(o, "}\n");
	for (size_t i = 1; i < n; i++) {
		out_str(o, "{\"type\":\"node\"");
		json_member_number(o, "depth", nodes[i].depth);
		json_member_string(o, "function", nodes[i].function);
		json_member_string(o, "module", nodes[i].module);
		print_json_ranges(o, &nodes[i]);
		json_member_number(o, "n_ranks", nodes[i].n_ranks);
		json_member_number(o, "threads", nodes[i].n_threads);
		json_member_number(o, "ends", nodes[i].n_ends);
		out_str(o, "}\n");
	}
}

/* Writes range @i of @n to @to, with what divides it from the one before; returns its size. */
static size_t format_range(const struct fathom_stack_node *n, uint32_t i, char *to, size_t cap)
{
	const struct fathom_rank_range r = n->ranges[i];
	const char *before = i ? "," : "[";
	const int size = r.first == r.last ? snprintf(to, cap, "%s%" PRIu32, before, r.first)
					   : snprintf(to, cap, "%s%" PRIu32 "-%" PRIu32, before,
						      r.first, r.last);

	return (size_t)size;
}

/* Writes the ranks of @n, such as [0-1023,1030], to @to; what has no room is "...". */
static void format_ranks(const struct fathom_stack_node *n, char to[RANKS_WIDTH + 1])
{
	static const char end[] = "...]";
	size_t at = 0;

	for (uint32_t i = 0; i < n->n_ranges && at < RANKS_WIDTH; i++)
		at += format_range(n, i, to + at, RANKS_WIDTH + 1 - at);
	if (at < RANKS_WIDTH)
		memcpy(to + at, "]", 2);
	else
		memcpy(to + RANKS_WIDTH + 1 - sizeof end, end, sizeof end);
}

/* Prints all ranks of @n. */
static void print_ranks(struct out *o, const struct fathom_stack_node *n)
{
	char text[48];

	for (uint32_t i = 0; i < n->n_ranges; i++) {
		(void)format_range(n, i, text, sizeof text);
		out_str(o, text);
	}
	out_str(o, n->n_ranges ? "]" : "[]");
}

/* Prints a node; its ranks where they are others than those of its caller. */
static void print_node(struct out *o, const struct fathom_stack_node *n,
		       const struct fathom_stack_node *caller)
{
	char ranks[RANKS_WIDTH + 1] = "";
	char text[64];

	if (n->n_ranks != caller->n_ranks)
		format_ranks(n, ranks);
	(void)snprintf(text, sizeof text, "%8" PRIu64 " %8" PRIu64 "  %-*s ", n->n_ranks,
		       n->n_threads, RANKS_WIDTH, ranks);
	out_str(o, text);
	for (uint32_t i = 1; i < n->depth && i <= MOST_INDENT; i++)
		out_char(o, ' ');
	out_begin_part(o, OUT_NAME);
	out_text(o, n->function, strlen(n->function));
	out_end_part(o);
	if (n->module) {
		out_str(o, "  ");
		out_begin_part(o, OUT_FILE);
		out_text(o, n->module, strlen(n->module));
		out_end_part(o);
	}
	out_char(o, '\n');
}

static void print_text(struct out *o, const struct fathom_stack_node *nodes, size_t n)
{
	out_dec(o, nodes[0].n_ranks);
	out_str(o, nodes[0].n_ranks == 1 ? " rank " : " ranks ");
	print_ranks(o, &nodes[0]);
	out_str(o, ", ");
	out_dec(o, nodes[0].n_threads);
	out_str(o, nodes[0].n_threads == 1 ? " thread\n" : " threads\n");
	out_str(o, "\n   ranks  threads  who                      what calls what\n");
	for (size_t i = 1; i < n; i++)
		print_node(o, &nodes[i], &nodes[nodes[i].parent]);
}

int stack_merge(struct stack *v)
{
	static const char *standard_input[] = { "-" };
	const char *const *paths = (const char *const *)v->common.arguments;
	int n_paths = v->common.n_arguments;
	const struct fathom_stack_node *nodes;
	struct fathom_stack_merge *m;
	struct fathom_errinfo info;
	struct fathom *session;
	bool is_done = true;
	size_t n = 0;
	int status;

	if (!n_paths) {
		paths = standard_input;
		n_paths = 1;
	}
	session = common_session(&v->common);
	if (fathom_stack_merge_create(session, &m, &info)) {
		complain_error(&info);
		return EXIT_USAGE;
	}
	for (int i = 0; is_done && i < n_paths; i++)
		is_done = add_file(m, paths[i]);
	if (is_done && fathom_stack_merge_nodes(m, &nodes, &n, &info)) {
		complain_error(&info);
		is_done = false;
	}
	status = is_done ? EXIT_SUCCESS : EXIT_USAGE;
	if (is_done) {
		common_out_init(&v->common, &v->out);
		if (v->common.json)
			print_json(&v->out, nodes, n);
		else
			print_text(&v->out, nodes, n);
		out_flush(&v->out);
		out_deinit(&v->out);
		status = common_status(&v->out, false);
	}
	fathom_stack_merge_free(m);
	fault_destroy(session);
	return status;
}
