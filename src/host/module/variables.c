/* SPDX-License-Identifier: MIT */
#include "host/module/variables.h"

#include <stdlib.h>

#include "host/base/progress.h"
#include "host/module/lines.h"
#include "host/module/module.h"
#include "host/module/unit_data.h"
#include "host/symbol/gnu_rules.h"
#include "safe/base/limits.h"
#include "safe/base/sort.h"
#include "safe/dwarf/entry.h"

struct variable {
	uint64_t svma;
	uint64_t unit_off;
	uint32_t file; /* numbered as in its unit */
	uint32_t line;
	bool is_merged;          /* with others, under one symbol */
	struct fathom_attr name; /* the one that GNU's rule compares */
};

struct fathom_variables {
	struct fathom_debug *debug;
	struct variable *list; /* sorted by svma; those of one unit in the order of their entries */
	size_t n;
	uint32_t *symbols; /* for the first variable at an address, what GNU's rule takes; or 0 */
	uint64_t bytes;    /* counted against the budget */
};

struct variables {
	FATHOM_ARRAY_OF(struct variable);
};

/* The variables read so far. */
struct reading {
	struct fathom_debug *d;
	struct fathom_worker *w;
	const struct fathom_open_unit *u;
	struct variables list;
};

/* Fills in what @entry does not state itself from the entries it refers to. */
static void complete(const struct fathom_unit *unit, struct fathom_entry *entry)
{
	const uint32_t wanted = 1u << FATHOM_ENTRY_DECL_FILE | 1u << FATHOM_ENTRY_DECL_LINE |
				1u << FATHOM_ENTRY_NAME | 1u << FATHOM_ENTRY_LINKAGE_NAME;
	struct fathom_entry next = *entry;
	uint64_t off;

	for (int i = 0; i < FATHOM_MAX_ORIGIN_CHAIN && (entry->present & wanted) != wanted; i++) {
		if (!fathom_entry_origin(unit, &next, &off))
			return;
		fathom_entry_read(unit, off, &next);
		for (int slot = 0; slot < FATHOM_ENTRY_COUNT; slot++)
			if (wanted & ~entry->present & next.present & 1u << slot)
				entry->attr[slot] = next.attr[slot];
		entry->present |= next.present & wanted;
	}
}

/*
 * Returns the name by which GNU's rule knows @entry: its own, or else the linkage name of what it
 * refers to.
 */
static struct fathom_attr name_of(const struct fathom_entry *entry, bool own_name)
{
	const struct fathom_attr *a = fathom_entry_attr(entry, FATHOM_ENTRY_LINKAGE_NAME);

	if (!a || own_name)
		a = fathom_entry_attr(entry, FATHOM_ENTRY_NAME);
	return a ? *a : (struct fathom_attr){ 0 };
}

/* Adds the variable at @off if it has an address and a declaration; false if out of memory. */
static bool add_variable(struct reading *r, uint64_t off)
{
	const struct fathom_unit *unit = &r->u->unit;
	const struct fathom_attr *file;
	const struct fathom_attr *line;
	struct fathom_entry entry;
	uint64_t merged_off;
	uint64_t svma;
	bool own_name;

	fathom_entry_read(unit, off, &entry);
	if (!fathom_entry_address(unit, &entry, &svma, &merged_off))
		return true;
	svma = fathom_dwarf_address(unit->skeleton, svma) + merged_off;
	if (!fathom_object_is_mapped(r->d->module->main, svma))
		return true;
	own_name = fathom_entry_attr(&entry, FATHOM_ENTRY_NAME) != NULL;
	complete(unit, &entry);
	file = fathom_entry_attr(&entry, FATHOM_ENTRY_DECL_FILE);
	line = fathom_entry_attr(&entry, FATHOM_ENTRY_DECL_LINE);
	if (!file || !line || file->value > UINT32_MAX || line->value > UINT32_MAX)
		return true;
	return fathom_array_push(&r->list, (struct variable){ .svma = svma,
							      .unit_off = r->u->skeleton.header.off,
							      .file = (uint32_t)file->value,
							      .line = (uint32_t)line->value,
							      .is_merged = merged_off != 0,
							      .name = name_of(&entry, own_name) });
}

/* Reads all entries of the unit; damage ends it. */
static bool read_unit(struct reading *r)
{
	struct fathom_die_reader reader;
	struct fathom_die die;
	uint32_t depth;

	fathom_die_reader_init(&reader, &r->u->unit, r->u->unit.header.die_off);
	while (!fathom_die_next(&reader, FATHOM_DIE_BIT(FATHOM_DIE_OTHER), &die, &depth, NULL))
		if (!fathom_keeps_pace(&r->w->pace) ||
		    (die.tag == DW_TAG_variable && !add_variable(r, die.off)))
			return false;
	return true;
}

static bool read_units(struct reading *r)
{
	const struct fathom_dwarf *view = &r->d->view;
	const uint64_t size = view->section[FATHOM_DEBUG_INFO].size;
	struct fathom_unit_header header;
	struct fathom_open_unit u;
	bool done = true;

	for (uint64_t off = 0; done && off < size; off = header.end_off) {
		const fathom_err err = fathom_unit_header_read(view, off, &header, NULL);

		if (err &&
		    (err != FATHOM_E_UNSUPPORTED || !fathom_unit_end(view, off, &header.end_off)))
			break;
		if (err || header.type == DW_UT_type ||
		    fathom_unit_data_open(r->w, r->d, off, &u, NULL))
			continue;
		r->u = &u;
		done = read_unit(r);
		fathom_unit_data_close(r->w, &u);
	}
	return done;
}

/* Sorts the variables by address; equal ones stay in their order. */
static bool sort_list(struct reading *r, struct fathom_variables *v)
{
	const struct variable *from = r->list.items;
	struct fathom_keyed *keyed = malloc((2 * r->list.n + 1) * sizeof *keyed);

	v->n = r->list.n;
	v->list = malloc((v->n + 1) * sizeof *v->list);
	if (!keyed || !v->list) {
		free(keyed);
		return false;
	}
	for (size_t i = 0; i < v->n; i++)
		keyed[i] = (struct fathom_keyed){ from[i].svma, i };
	fathom_sort_keyed(keyed, keyed + v->n, v->n);
	for (size_t i = 0; i < v->n; i++)
		v->list[i] = from[keyed[i].value];
	free(keyed);
	return true;
}

/* Returns the index of the first variable at or after @svma. */
static size_t lower_bound(const struct fathom_variables *v, uint64_t svma)
{
	return FATHOM_BISECT(v->n, i, v->list[i].svma < svma);
}

/* Chooses in @t the symbol that GNU's rule takes for each address of a variable. */
static void choose_symbols(const struct fathom_variables *v, const struct fathom_symbol_table *t)
{
	for (uint32_t i = 1; i < t->view.count; i++) {
		struct fathom_symbol_region region;
		struct fathom_symbol s;
		struct fathom_symbol before;
		uint64_t svma;
		size_t at;

		fathom_symtab_get(&t->view, i, &s);
		if (s.type == STT_SECTION || !fathom_symbol_place(t, &s, &svma, &region) ||
		    region.code)
			continue;
		at = lower_bound(v, svma);
		if (at == v->n || v->list[at].svma != svma)
			continue;
		fathom_symtab_get(&t->view, v->symbols[at], &before);
		if (!v->symbols[at] || before.bind != STB_GLOBAL)
			v->symbols[at] = i;
	}
}

/* Returns the table that GNU's rule looks in, or NULL. */
static const struct fathom_symbol_table *gnu_table(const struct fathom_debug *d)
{
	const struct fathom_symbol_set *set = &d->module->symbols;
	const uint32_t own = fathom_gnu_tables(set).own;

	return own == FATHOM_NONE ? NULL : &set->table[own];
}

static bool add_symbols(struct fathom_debug *d, struct fathom_variables *v)
{
	const struct fathom_symbol_table *t = gnu_table(d);

	v->symbols = calloc(v->n + 1, sizeof *v->symbols);
	if (v->symbols && t)
		choose_symbols(v, t);
	return v->symbols != NULL;
}

static struct fathom_variables *create(struct fathom_debug *d, struct fathom_worker *w)
{
	struct fathom_variables *v = calloc(1, sizeof *v);
	struct reading r = { .d = d, .w = w };
	const bool done = v && read_units(&r) && sort_list(&r, v) && add_symbols(d, v);

	fathom_array_free(&r.list);
	if (!done) {
		fathom_variables_free(v, &d->module->session->memory);
		return NULL;
	}
	v->debug = d;
	v->bytes = sizeof *v + v->n * (sizeof *v->list + sizeof *v->symbols);
	fathom_memory_count(&d->module->session->memory, v->bytes);
	return v;
}

const struct fathom_variables *fathom_variables_get(struct fathom_debug *d, struct fathom_worker *w)
{
	struct fathom_variables *expected = NULL;
	struct fathom_variables *v = atomic_load_explicit(&d->variables, memory_order_acquire);

	if (v)
		return v;
	v = create(d, w);
	/* A call that was given up may have missed split units. */
	if (v && fathom_is_cancelled(d->module->session)) {
		fathom_variables_free(v, &d->module->session->memory);
		return NULL;
	}
	if (v && !atomic_compare_exchange_strong(&d->variables, &expected, v)) {
		fathom_variables_free(v, &d->module->session->memory);
		v = expected;
	}
	return v;
}

void fathom_variables_free(struct fathom_variables *v, struct fathom_memory *m)
{
	if (!v)
		return;
	fathom_memory_uncount(m, v->bytes);
	free(v->list);
	free(v->symbols);
	free(v);
}

/* Returns the name of the symbol that GNU's rule takes for variable @first, or an empty one. */
static struct fathom_str symbol_name(const struct fathom_variables *v, size_t first)
{
	const struct fathom_symbol_table *t = gnu_table(v->debug);
	struct fathom_symbol s;

	if (first == v->n || !v->symbols[first])
		return (struct fathom_str){ NULL, 0 };
	fathom_symtab_get(&t->view, v->symbols[first], &s);
	return s.type == STT_FUNC ? (struct fathom_str){ NULL, 0 }
				  : fathom_symtab_name(&t->view, &s);
}

/* Returns whether the name of @variable is part of @symbol. */
static bool is_in_symbol(const struct fathom_variables *v, struct fathom_worker *w,
			 const struct variable *variable, struct fathom_str symbol)
{
	struct fathom_open_unit u;
	struct fathom_str name;
	bool found;

	if (fathom_unit_data_open(w, v->debug, variable->unit_off, &u, NULL))
		return false;
	name = fathom_unit_string(&u.unit, &variable->name);
	found = name.size && name.size <= symbol.size &&
		memmem(symbol.data, symbol.size, name.data, name.size);
	fathom_unit_data_close(w, &u);
	return found;
}

/* Finds the variable that starts at @svma; NULL if none is known. */
static const struct variable *find_variable(const struct fathom_variables *v,
					    struct fathom_worker *w, uint64_t svma, bool in_symbol)
{
	const size_t first = lower_bound(v, svma);
	const struct fathom_str symbol =
		in_symbol ? symbol_name(v, first) : (struct fathom_str){ NULL, 0 };
	const struct variable *found = NULL;

	if (in_symbol && !symbol.size)
		return NULL;
	/* The first unit counts, and in it the last entry. */
	for (size_t i = first; i < v->n && v->list[i].svma == svma; i++) {
		if (found && v->list[i].unit_off != found->unit_off)
			break;
		if (!in_symbol ||
		    (!v->list[i].is_merged && is_in_symbol(v, w, &v->list[i], symbol)))
			found = &v->list[i];
	}
	return found;
}

/* Writes the path of file @file of @u to the worker's pool. */
static bool write_path(struct fathom_worker *w, struct fathom_debug *d,
		       const struct fathom_open_unit *u, uint32_t file)
{
	w->pool.n = 0;
	return u->line_off != FATHOM_NO_LINES &&
	       fathom_lines_collect(w, &u->unit, d->module->main, u->line_off, NULL, 0, NULL) ==
		       FATHOM_OK &&
	       fathom_lines_define(w, file) &&
	       fathom_lines_whole_path(w, &u->unit, u->comp_dir, file, &w->pool) &&
	       w->pool.n <= UINT32_MAX;
}

bool fathom_variables_find(const struct fathom_variables *v, struct fathom_worker *w, uint64_t low,
			   uint64_t svma, bool in_symbol, struct fathom_str *ret_path,
			   uint32_t *ret_line)
{
	const size_t next = in_symbol || svma == UINT64_MAX ? 0 : lower_bound(v, svma + 1);
	const struct variable *found;
	struct fathom_open_unit u;
	bool done;

	if (next && v->list[next - 1].svma >= low)
		svma = v->list[next - 1].svma;
	found = find_variable(v, w, svma, in_symbol);
	if (!found || fathom_unit_data_open(w, v->debug, found->unit_off, &u, NULL))
		return false;
	done = write_path(w, v->debug, &u, found->file);
	fathom_unit_data_close(w, &u);
	if (!done)
		return false;
	*ret_path = (struct fathom_str){ w->pool.items, (uint32_t)w->pool.n };
	*ret_line = found->line;
	return true;
}
