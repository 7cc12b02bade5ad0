/* SPDX-License-Identifier: MIT */
#include "variables.h"

#include <stdlib.h>

#include "../safe/base/limits.h"
#include "../safe/base/sort.h"
#include "../safe/dwarf/entry.h"
#include "lines.h"
#include "module.h"
#include "symbols_gnu.h"
#include "unit_data.h"

/* Codes of abbreviations that are looked up by number; nearly no table has more. */
#define PLACES 4096

struct variable {
	uint64_t svma;
	uint64_t unit_off;
	uint32_t path; /* offset in the pool */
	uint32_t path_size;
	uint32_t line;
	uint32_t name; /* offset in the pool of names, which only lasts until all is read */
	uint32_t name_size;
	bool in_symbol; /* the symbol that GNU's rule takes for its address holds its name */
};

struct fathom_variables {
	struct variable *list; /* sorted by svma; those of one unit in their order */
	size_t n;
	char *pool;
	uint64_t bytes; /* counted against the budget */
};

/* What is being read. */
struct reading {
	struct fathom_debug *d;
	struct fathom_worker *w;
	struct fathom_array list;  /* struct variable */
	struct fathom_array pool;  /* char */
	struct fathom_array names; /* char */
	struct fathom_abbrev_places places;
	/* the unit */
	const struct fathom_open_unit *u;
	bool table_tried;
	bool has_table;        /* its files are in the worker */
	uint32_t file;         /* whose path was added last */
	struct variable named; /* with that path */
};

/* Looks for what @entry does not state itself in the entries it refers to. */
static void complete(const struct reading *r, struct fathom_entry *entry)
{
	const uint32_t wanted = 1u << FATHOM_ENTRY_DECL_FILE | 1u << FATHOM_ENTRY_DECL_LINE |
				1u << FATHOM_ENTRY_NAME | 1u << FATHOM_ENTRY_LINKAGE_NAME;
	struct fathom_entry next = *entry;
	uint64_t off;

	for (int i = 0; i < FATHOM_MAX_ORIGIN_CHAIN && (entry->present & wanted) != wanted; i++) {
		if (!fathom_entry_origin(&r->u->unit, &next, &off) ||
		    fathom_entry_read(&r->u->unit, &r->places, off, 0, &next))
			return;
		for (int slot = 0; slot < FATHOM_ENTRY_COUNT; slot++)
			if (wanted & ~entry->present & next.present & 1u << slot)
				entry->attr[slot] = next.attr[slot];
		entry->present |= next.present & wanted;
	}
}

/* Reads the unit's table of files, once. */
static bool read_table(struct reading *r)
{
	struct fathom_errinfo info;

	if (r->table_tried)
		return r->has_table;
	r->table_tried = true;
	r->file = UINT32_MAX;
	r->has_table = r->u->line_off != FATHOM_NO_LINES &&
		       fathom_lines_collect(r->w, &r->u->unit, r->d->module->main, r->u->line_off,
					    NULL, 0, &info) == FATHOM_OK;
	return r->has_table;
}

/* Makes r->named carry the path of file @file; false when it has none. */
static bool name_file(struct reading *r, uint32_t file)
{
	const size_t start = r->pool.n;

	if (!read_table(r))
		return false;
	if (file == r->file)
		return r->named.path_size != 0;
	r->file = file;
	r->named.path_size = 0;
	if (!fathom_lines_define(r->w, file) ||
	    !fathom_lines_path(r->w, &r->u->unit, r->u->comp_dir, file, &r->pool) ||
	    r->pool.n > UINT32_MAX) {
		r->pool.n = start;
		return false;
	}
	r->named.path = (uint32_t)start;
	r->named.path_size = (uint32_t)(r->pool.n - start);
	return true;
}

/*
 * The name by which GNU's rule knows @entry: its own or, of what it refers to, rather that for the
 * linker.
 */
static struct fathom_str name_of(const struct reading *r, const struct fathom_entry *entry,
				 bool own_name)
{
	const struct fathom_attr *a = fathom_entry_attr(entry, FATHOM_ENTRY_LINKAGE_NAME);

	if (!a || own_name)
		a = fathom_entry_attr(entry, FATHOM_ENTRY_NAME);
	return a ? fathom_unit_string(&r->u->unit, a) : (struct fathom_str){ NULL, 0 };
}

/* Keeps @name for @v; false without memory. */
static bool add_name(struct reading *r, struct fathom_str name, struct variable *v)
{
	if (!fathom_array_reserve(&r->names, 1, name.size) || r->names.n > UINT32_MAX - name.size)
		return false;
	if (name.size)
		memcpy((char *)r->names.data + r->names.n, name.data, name.size);
	v->name = (uint32_t)r->names.n;
	v->name_size = name.size;
	r->names.n += name.size;
	return true;
}

static bool add_variable(struct reading *r, struct fathom_entry *entry)
{
	const struct fathom_attr *file;
	const struct fathom_attr *line;
	struct variable *v;
	uint64_t svma;
	bool own_name;

	if (!fathom_entry_address(&r->u->unit, entry, &svma) ||
	    !fathom_object_is_mapped(r->d->module->main, svma))
		return true;
	own_name = fathom_entry_attr(entry, FATHOM_ENTRY_NAME) != NULL;
	complete(r, entry);
	file = fathom_entry_attr(entry, FATHOM_ENTRY_DECL_FILE);
	line = fathom_entry_attr(entry, FATHOM_ENTRY_DECL_LINE);
	if (!file || !line || file->value > UINT32_MAX || line->value > UINT32_MAX ||
	    !name_file(r, (uint32_t)file->value))
		return true;
	if (!fathom_array_reserve(&r->list, sizeof *v, 1))
		return false;
	v = (struct variable *)r->list.data + r->list.n++;
	*v = r->named;
	v->svma = svma;
	v->unit_off = r->u->skeleton.header.off;
	v->line = (uint32_t)line->value;
	return add_name(r, name_of(r, entry, own_name), v);
}

/* Reads all entries of the unit; what is damaged ends it. */
static bool read_unit(struct reading *r)
{
	const struct fathom_unit *unit = &r->u->unit;
	struct fathom_entry entry;

	r->table_tried = false;
	fathom_abbrev_places_read(unit, &r->places);
	for (uint64_t off = unit->header.die_off; off < unit->header.end_off;
	     off = entry.next_off) {
		if (fathom_entry_read(unit, &r->places, off, DW_TAG_variable, &entry))
			break;
		if (entry.tag == DW_TAG_variable && !add_variable(r, &entry))
			return false;
	}
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

/* Sorts by address; the order of equal ones stays. */
static bool sort_list(struct reading *r, struct fathom_variables *v)
{
	const struct variable *from = r->list.data;
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

/* The number of the first variable at or behind @svma. */
static size_t lower_bound(const struct fathom_variables *v, uint64_t svma)
{
	size_t low = 0;
	size_t high = v->n;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (v->list[mid].svma < svma)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* By first variable at an address: the symbol that GNU's rule takes for it, 0: none. */
static void choose_symbols(const struct fathom_variables *v, const struct fathom_symbol_table *t,
			   uint32_t *chosen)
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
		fathom_symtab_get(&t->view, chosen[at], &before);
		if (!chosen[at] || before.bind != STB_GLOBAL)
			chosen[at] = i;
	}
}

static bool holds(struct fathom_str text, const char *part, size_t size)
{
	return text.size >= size && size && memmem(text.data, text.size, part, size);
}

/* Notes which variables the symbols at their addresses name; false without memory. */
static bool mark_named(struct reading *r, struct fathom_variables *v)
{
	const struct fathom_symbol_set *set = &r->d->module->symbols;
	const uint32_t own = fathom_gnu_tables(set).own;
	const struct fathom_symtab *t;
	struct fathom_symbol s;
	uint32_t *chosen;
	size_t first = 0;

	if (own == FATHOM_NONE)
		return true;
	chosen = calloc(v->n + 1, sizeof *chosen);
	if (!chosen)
		return false;
	t = &set->table[own].view;
	choose_symbols(v, &set->table[own], chosen);
	for (size_t i = 0; i < v->n; i++) {
		first = v->list[i].svma == v->list[first].svma ? first : i;
		fathom_symtab_get(t, chosen[first], &s);
		v->list[i].in_symbol =
			chosen[first] && s.type != STT_FUNC &&
			holds(fathom_symtab_name(t, &s),
			      (const char *)r->names.data + v->list[i].name, v->list[i].name_size);
	}
	free(chosen);
	return true;
}

static struct fathom_variables *create(struct fathom_debug *d, struct fathom_worker *w)
{
	struct fathom_variables *v = calloc(1, sizeof *v);
	struct reading r = { .d = d, .w = w, .places = { .n = PLACES } };
	bool done;

	r.places.places = malloc(PLACES * sizeof *r.places.places);
	done = v && r.places.places && read_units(&r) && sort_list(&r, v) && mark_named(&r, v);
	free(r.places.places);
	fathom_array_deinit(&r.list);
	fathom_array_deinit(&r.names);
	if (!done) {
		fathom_array_deinit(&r.pool);
		fathom_variables_free(v, &d->module->session->memory);
		return NULL;
	}
	v->pool = r.pool.data;
	v->bytes = sizeof *v + v->n * sizeof *v->list + r.pool.cap;
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
	free(v->pool);
	free(v);
}

bool fathom_variables_find(const struct fathom_variables *v, uint64_t svma, bool in_symbol,
			   struct fathom_str *ret_path, uint32_t *ret_line)
{
	const struct variable *found = NULL;

	/* Of several units the first counts, and in it the last entry. */
	for (size_t i = lower_bound(v, svma); i < v->n && v->list[i].svma == svma; i++)
		if ((v->list[i].in_symbol || !in_symbol) &&
		    (!found || v->list[i].unit_off == found->unit_off))
			found = &v->list[i];
	if (!found)
		return false;
	*ret_path = (struct fathom_str){ v->pool + found->path, found->path_size };
	*ret_line = found->line;
	return true;
}
