/* SPDX-License-Identifier: MIT */
/*
 * Finds the code of a line: each code range that the line tables assign to it, from the first
 * statement, where a debugger would stop (DWARF 5, 6.2.2: is_stmt), to the next line. Optimising
 * compilers leave statements without code. Such a place counts if the function has no better one
 * for the line; failing that, code of the line without a statement counts.
 */
#include "host/base/array.h"
#include "host/find/unit_search.h"
#include "host/module/lines.h"

/* Rows read at a time. */
#define BATCH 64

/* A file of the table that a query wants. */
struct wanted {
	uint32_t query;
	uint32_t file; /* index in the table */
	const char *path;
	/* start of the open range, if is_open */
	uint64_t low;
	uint64_t statement; /* first statement in it, if has_statement */
	bool has_statement;
	bool is_open;
};

/* Quality of a code range. */
enum { TIER_STATEMENT, TIER_EMPTY, TIER_CODE };

struct wanted_array {
	FATHOM_ARRAY_OF(struct wanted);
};

/* The tables of one unit. */
struct table {
	struct fathom_find_task *t;
	const struct fathom_unit *unit;
	struct fathom_str comp_dir;
	struct wanted_array wanted;
};

static struct fathom_str last_part(struct fathom_str path)
{
	for (uint32_t i = path.size; i-- > 0;)
		if (path.data[i] == '/')
			return (struct fathom_str){ path.data + i + 1, path.size - i - 1 };
	return path;
}

/* Returns whether a query's file has the last part of @name; rules out most tables. */
static bool may_be_wanted(const struct fathom_find_task *t, struct fathom_str name)
{
	for (uint32_t i = 0; i < t->f->n_queries; i++)
		if (t->f->queries[i].kind == FATHOM_QUERY_LINE &&
		    str_equal(last_part(t->f->queries[i].text), last_part(name)))
			return true;
	return false;
}

/* Adds file @file, whose path is in the worker's pool, for each query that it matches. */
static bool add_wanted(struct table *tab, uint32_t file)
{
	struct fathom_find_task *t = tab->t;
	const struct fathom_str path = { t->w->pool.items, (uint32_t)t->w->pool.n };
	const char *kept = NULL;

	for (uint32_t i = 0; i < t->f->n_queries; i++) {
		const struct fathom_find_query *q = &t->f->queries[i];

		if (q->kind != FATHOM_QUERY_LINE || !fathom_find_task_asks(t, i) ||
		    !fathom_find_query_takes_file(q, path))
			continue;
		if (!kept)
			kept = fathom_arena_strdup(&t->arena, path);
		if (!kept ||
		    !fathom_array_push(&tab->wanted,
				       (struct wanted){ .query = i, .file = file, .path = kept }))
			return false;
	}
	return true;
}

/* Finds the wanted files of the table that was read last. */
static bool find_files(struct table *tab)
{
	struct fathom_worker *w = tab->t->w;

	for (size_t i = 0; i < w->lines.files.n; i++) {
		const struct fathom_line_entry *e = w->lines.files.items + i;
		const struct fathom_str name =
			fathom_line_entry_name(&w->lines.program, tab->unit, e);
		const uint32_t file = (uint32_t)i + w->lines.files_base;

		if (!name.data || !may_be_wanted(tab->t, name))
			continue;
		w->pool.n = 0;
		if (fathom_lines_path(w, tab->unit, tab->comp_dir, file, &w->pool) &&
		    w->pool.n <= UINT32_MAX && !add_wanted(tab, file))
			return false;
	}
	return true;
}

/* Closes the open range at @end. */
static bool close_stretch(struct table *tab, struct wanted *x, uint64_t end)
{
	struct fathom_find_place place = {
		.svma = x->has_statement ? x->statement : x->low,
		.query = x->query,
		.line = tab->t->f->queries[x->query].line,
		.file = x->path,
	};

	x->is_open = false;
	place.size = end > place.svma ? end - place.svma : 0;
	place.tier = !x->has_statement ? TIER_CODE : place.size ? TIER_STATEMENT : TIER_EMPTY;
	/* Dropped code has no place. */
	if ((!place.size && !x->has_statement) ||
	    !fathom_object_has_code(tab->t->f->modules[tab->t->module].module->main, place.svma))
		return true;
	return fathom_find_task_add(tab->t, &place);
}

static bool take_row(struct table *tab, const struct fathom_line_row *row)
{
	struct wanted *x = tab->wanted.items;

	for (size_t i = 0; i < tab->wanted.n; i++) {
		const bool is_of = !row->end_sequence && row->file == x[i].file &&
				   row->line == tab->t->f->queries[x[i].query].line;

		if (x[i].is_open && !is_of && !close_stretch(tab, &x[i], row->address))
			return false;
		if (!x[i].is_open && is_of) {
			x[i].is_open = true;
			x[i].has_statement = false;
			x[i].low = row->address;
		}
		if (is_of && row->is_stmt && !x[i].has_statement) {
			x[i].has_statement = true;
			x[i].statement = row->address;
		}
	}
	return true;
}

static fathom_err read_rows(struct table *tab, struct fathom_errinfo *reterr)
{
	struct fathom_line_reader *reader = &tab->t->w->lines.reader;
	struct fathom_line_row rows[BATCH];
	size_t n;

	fathom_line_reader_init(reader, &tab->t->w->lines.program);
	reader->dull = 0;
	while ((n = fathom_line_reader_rows(reader, rows, BATCH)) != 0) {
		if (!fathom_keeps_pace(&tab->t->w->pace))
			return FATHOM_E_CANCELLED;
		for (size_t i = 0; i < n; i++)
			if (!take_row(tab, &rows[i]))
				return FATHOM_E_MEMORY;
	}
	return fathom_line_reader_error(reader, reterr);
}

static fathom_err look_in(struct fathom_find_task *t, uint64_t off, struct fathom_errinfo *reterr)
{
	struct fathom_unit unit;
	struct fathom_die root;
	const struct fathom_attr *list;
	struct table tab = { .t = t, .unit = &unit };
	fathom_err err;

	err = fathom_worker_open_root(t->w, &t->d->view, off, &unit, &root, reterr);
	if (err)
		return err;
	list = fathom_die_attr(&root, FATHOM_AT_STMT_LIST);
	tab.comp_dir = fathom_unit_string(&unit, fathom_die_attr(&root, FATHOM_AT_COMP_DIR));
	if (list)
		err = fathom_lines_collect(t->w, &unit, t->d->module->main, list->value, NULL, 0,
					   reterr);
	if (list && !err && !(fathom_lines_define(t->w, UINT32_MAX) && find_files(&tab)))
		err = FATHOM_E_MEMORY;
	if (!err && tab.wanted.n)
		err = read_rows(&tab, reterr);
	fathom_worker_close_unit(t->w, &unit);
	fathom_array_free(&tab.wanted);
	return err;
}

fathom_err fathom_find_lines(struct fathom_find *f)
{
	return fathom_find_units(f, true, look_in);
}
