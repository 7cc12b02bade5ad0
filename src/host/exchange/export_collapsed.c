/* SPDX-License-Identifier: MIT */
/*
 * Collapsed stacks of a profile: the tree by process, in which functions of equal names are one. It
 * is written by the names of siblings, so that lines are sorted by their paths.
 */
#include <stdlib.h>
#include <string.h>

#include "host/base/key_map.h"
#include "host/base/path.h"
#include "host/events/collapsed_line.h"
#include "host/events/name_table.h"
#include "host/exchange/exporting.h"
#include "safe/base/error.h"

/* A path: all nodes of the tree whose names are the same up to the root. */
struct path {
	uint64_t weight; /* of stacks that end here */
	uint32_t parent; /* index, which is lower; of path 0: itself */
	uint32_t name;   /* number */
	uint32_t depth;  /* of path 0: 0 */
};

struct paths {
	const struct fathom_profile *profile;
	FATHOM_ARRAY_OF(struct path);
	struct fathom_name_table names;
	size_t n_kernel;                   /* names that are paths of the kernel's modules */
	struct fathom_key_map by_place;    /* paths by parent and name */
	struct fathom_key_map by_row;      /* names by address of the row */
	struct fathom_bytes_array spelled; /* the name under construction */
	bool no_memory;
};

/* Gives the paths of the kernel's modules the first numbers. */
static void add_kernel(struct paths *p)
{
	const struct fathom_profile *profile = p->profile;

	for (size_t i = 0; i < profile->n_modules; i++)
		if (profile->modules[i].kind == FATHOM_PROFILE_MODULE_KERNEL &&
		    fathom_name_table_add(&p->names, profile->modules[i].path) == FATHOM_KEY_NEW)
			p->no_memory = true;
	p->n_kernel = p->names.n;
}

/* Returns whether @path is of code of the kernel. */
static bool is_kernel(struct paths *p, const char *path)
{
	return path && fathom_name_table_add(&p->names, path) < p->n_kernel;
}

static void spell(struct paths *p, const char *s)
{
	const size_t n = strlen(s);

	if (!fathom_array_room(&p->spelled, n + 1)) {
		p->no_memory = true;
		return;
	}
	memcpy(p->spelled.items + p->spelled.n, s, n + 1);
	p->spelled.n += n;
}

/* Spells the name of @row: code without one is its module in brackets. */
static void spell_row(struct paths *p, const struct fathom_report_row *row)
{
	const bool is_code = row->kind == FATHOM_REPORT_ROW_CODE;
	const char *module = fathom_path_last_part(row->module);

	p->spelled.n = 0;
	if (is_code && !row->linkage_name && strcmp(row->name, "??") == 0) {
		spell(p, "[");
		spell(p, module ? module : "unknown");
		spell(p, "]");
	} else {
		spell(p, row->name);
	}
	if (is_code && is_kernel(p, row->module))
		spell(p, "_[k]");
}

/* Returns the number of the name of @row. */
static uint32_t name_of(struct paths *p, const struct fathom_report_row *row)
{
	uint32_t *number = fathom_key_map_at(&p->by_row, (uintptr_t)row);

	if (number && *number == FATHOM_KEY_NEW) {
		spell_row(p, row);
		if (!p->no_memory)
			*number = fathom_name_table_add(&p->names, p->spelled.items);
	}
	if (number && *number != FATHOM_KEY_NEW)
		return *number;
	p->no_memory = true;
	return 0;
}

/* Returns the path of @row below @parent; the deepest paths have none below them. */
static uint32_t path_below(struct paths *p, uint32_t parent, const struct fathom_report_row *row)
{
	const struct path path = { .parent = parent,
				   .name = name_of(p, row),
				   .depth = p->items[parent].depth + 1 };
	uint32_t *number;

	if (path.depth > FATHOM_COLLAPSED_DEEP + 1)
		return parent;
	number = fathom_key_map_at(&p->by_place, (uint64_t)parent << 32 | path.name);
	if (number && *number == FATHOM_KEY_NEW && fathom_array_push(p, path))
		*number = (uint32_t)p->n - 1;
	if (number && *number != FATHOM_KEY_NEW)
		return *number;
	p->no_memory = true;
	return 0;
}

/* Adds all nodes of @r. */
static void add_nodes(struct paths *p, const struct fathom_report *r)
{
	size_t n;
	const struct fathom_report_node *nodes = fathom_report_nodes(r, &n);
	uint32_t *path_of = malloc(n * sizeof *path_of);

	p->no_memory = !path_of || !fathom_array_push(p, (struct path){ .weight = 0 });
	if (!p->no_memory)
		path_of[0] = 0;
	for (size_t i = 1; i < n && !p->no_memory; i++) {
		path_of[i] = path_below(p, path_of[nodes[i].parent], nodes[i].row);
		p->items[path_of[i]].weight += nodes[i].self;
	}
	free(path_of);
}

/* A path with what it is sorted by. */
struct sorted {
	uint32_t parent;
	uint32_t path;
	const char *name;
};

static int compare_paths(const void *pa, const void *pb)
{
	const struct sorted *a = pa;
	const struct sorted *b = pb;

	return a->parent != b->parent ? u64_compare(a->parent, b->parent)
				      : strcmp(a->name, b->name);
}

/* Writes all paths, each before those below it. @s are sorted; @first has the first of each. */
static void write_paths(const struct paths *p, const struct sorted *s, const uint32_t *first,
			struct fathom_collapsed_line *line)
{
	const size_t n = p->n - 1;
	uint32_t *next = NULL; /* of each path: where to go on below it */
	uint32_t at = 0;

	next = malloc(p->n * sizeof *next);
	if (!next) {
		line->writer->no_memory = true;
		return;
	}
	memcpy(next, first, p->n * sizeof *next);
	while (!line->writer->no_memory && !line->writer->has_failed) {
		const uint32_t i = next[at];

		if (i >= n || s[i].parent != at) {
			if (!at)
				break;
			at = p->items[at].parent;
			continue;
		}
		next[at]++;
		at = s[i].path;
		fathom_collapsed_line_name(line, p->items[at].depth - 1, s[i].name);
		if (p->items[at].weight)
			fathom_collapsed_line_put(line, p->items[at].weight);
	}
	free(next);
}

/* Sorts the paths, and writes them. */
static void sort_and_write(struct paths *p, struct fathom_collapsed_line *line)
{
	const size_t n = p->n - 1;
	struct sorted *s = malloc((n + 1) * sizeof *s);
	uint32_t *first = malloc(p->n * sizeof *first);

	if (!s || !first) {
		p->no_memory = true;
		free(s);
		free(first);
		return;
	}
	for (size_t i = 0; i < n; i++)
		s[i] = (struct sorted){ p->items[i + 1].parent, (uint32_t)i + 1,
					p->names.items[p->items[i + 1].name].text };
	if (n)
		qsort(s, n, sizeof *s, compare_paths);
	for (size_t i = 0; i < p->n; i++)
		first[i] = (uint32_t)n;
	for (size_t i = n; i--;)
		first[s[i].parent] = (uint32_t)i;
	write_paths(p, s, first, line);
	free(s);
	free(first);
}

static void deinit(struct paths *p)
{
	fathom_array_free(p);
	fathom_name_table_deinit(&p->names);
	fathom_key_map_deinit(&p->by_place);
	fathom_key_map_deinit(&p->by_row);
	fathom_array_free(&p->spelled);
}

/* Writes the tree of @r. */
static fathom_err write_tree(const struct fathom_export *e, const struct fathom_report *r,
			     struct fathom_errinfo *reterr)
{
	struct paths p = { .profile = e->profile };
	struct fathom_trace_writer w = { .write = e->write, .data = e->data };
	struct fathom_collapsed_line line = { .writer = &w };

	add_kernel(&p);
	if (!p.no_memory)
		add_nodes(&p, r);
	if (!p.no_memory)
		sort_and_write(&p, &line);
	w.no_memory |= p.no_memory;
	if (!w.no_memory)
		(void)fathom_trace_writer_tell(&w);
	fathom_collapsed_line_deinit(&line);
	fathom_array_free(&w.out);
	deinit(&p);
	if (w.no_memory)
		return fathom_fail_memory(reterr);
	return w.has_failed ? fathom_export_fail_write(reterr) : FATHOM_OK;
}

fathom_err fathom_export_collapsed(const struct fathom_export *e, struct fathom_errinfo *reterr)
{
	struct fathom_report_options o = *e->options;
	struct fathom_report *r;
	fathom_err err;

	o.key = FATHOM_REPORT_BY_PROCESS;
	FATHOM_TRY(fathom_report_create(e->profile, &o, &r, reterr));
	err = write_tree(e, r, reterr);
	fathom_report_free(r);
	return err;
}
