/* SPDX-License-Identifier: MIT */
#include "host/exchange/name_paths.h"

#include <stdlib.h>
#include <string.h>

/* Gives the paths of the kernel's modules the first numbers. */
static void add_kernel(struct fathom_name_paths *p)
{
	const struct fathom_profile *profile = p->profile;

	for (size_t i = 0; i < profile->n_modules; i++)
		if (profile->modules[i].kind == FATHOM_PROFILE_MODULE_KERNEL &&
		    fathom_name_table_add(&p->names, profile->modules[i].path) == FATHOM_KEY_NEW)
			p->no_memory = true;
	p->n_kernel = p->names.n;
}

/* Returns whether @path is of code of the kernel. */
static bool is_kernel(struct fathom_name_paths *p, const char *path)
{
	return path && fathom_name_table_add(&p->names, path) < p->n_kernel;
}

/* Spells the name of @row. */
static void spell_row(struct fathom_name_paths *p, const struct fathom_report_row *row)
{
	p->spelled.n = 0;
	p->no_memory |= !fathom_frame_spell(&p->spelled, row);
	if (row->kind == FATHOM_REPORT_ROW_CODE && is_kernel(p, row->module))
		p->no_memory |= !fathom_frame_spell_text(&p->spelled, "_[k]");
}

/* Returns the number of the name of @row. */
static uint32_t name_of(struct fathom_name_paths *p, const struct fathom_report_row *row)
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
static uint32_t path_below(struct fathom_name_paths *p, uint32_t parent,
			   const struct fathom_report_row *row)
{
	const struct fathom_name_path path = { .parent = parent,
					       .name = name_of(p, row),
					       .depth = p->items[parent].depth + 1,
					       .row = row };
	uint32_t *number;

	if (path.depth > p->deepest)
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
static void add_nodes(struct fathom_name_paths *p, const struct fathom_report *r)
{
	size_t n;
	const struct fathom_report_node *nodes = fathom_report_nodes(r, &n);
	uint32_t *path_of = malloc(n * sizeof *path_of);

	p->no_memory = !path_of || !fathom_array_push(p, (struct fathom_name_path){ .weight = 0 });
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

/* Sorts the paths by their parents and names. */
static void sort_paths(struct fathom_name_paths *p)
{
	const size_t n = p->n - 1;
	struct sorted *s = malloc((n + 1) * sizeof *s);

	p->order = malloc((n + 1) * sizeof *p->order);
	p->first = malloc(p->n * sizeof *p->first);
	if (!s || !p->order || !p->first) {
		p->no_memory = true;
		free(s);
		return;
	}
	for (size_t i = 0; i < n; i++)
		s[i] = (struct sorted){ p->items[i + 1].parent, (uint32_t)i + 1,
					fathom_name_path_text(p, i + 1) };
	if (n)
		qsort(s, n, sizeof *s, compare_paths);
	for (size_t i = 0; i < p->n; i++)
		p->first[i] = (uint32_t)n;
	for (size_t i = n; i--;) {
		p->order[i] = s[i].path;
		p->first[s[i].parent] = (uint32_t)i;
	}
	free(s);
}

void fathom_name_paths_make(struct fathom_name_paths *p, const struct fathom_report *r)
{
	add_kernel(p);
	if (!p->no_memory)
		add_nodes(p, r);
	if (!p->no_memory)
		sort_paths(p);
}

void fathom_name_paths_deinit(struct fathom_name_paths *p)
{
	fathom_array_free(p);
	fathom_name_table_deinit(&p->names);
	fathom_key_map_deinit(&p->by_place);
	fathom_key_map_deinit(&p->by_row);
	fathom_array_free(&p->spelled);
	free(p->order);
	free(p->first);
}
