/* SPDX-License-Identifier: MIT */
#include "host/module/origin.h"

#include "host/module/worker.h"
#include "safe/base/limits.h"
#include "safe/dwarf/entry.h"
#include "safe/index/block.h"

#define FIRST_TABLE 256

void fathom_origins_deinit(struct fathom_origins *origins)
{
	fathom_array_free(&origins->names);
	fathom_array_free(&origins->table);
}

void fathom_origin_reset(struct fathom_worker *w)
{
	w->origins.names.n = 0;
	if (w->origins.table.n)
		memset(w->origins.table.items, 0, w->origins.table.n * sizeof(uint32_t));
}

static size_t hash_of(uint64_t serial, uint64_t off, size_t mask)
{
	return (size_t)(((off ^ serial << 48) * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & mask;
}

/* Returns the slot of (@serial, @off) in the table: an index in names plus 1, or 0 if empty. */
static uint32_t *find_place(struct fathom_worker *w, uint64_t serial, uint64_t off)
{
	const struct fathom_names *names = w->origins.names.items;
	uint32_t *table = w->origins.table.items;
	const size_t mask = w->origins.table.n - 1;
	size_t i = hash_of(serial, off, mask);

	while (table[i] && (names[table[i] - 1].off != off || names[table[i] - 1].serial != serial))
		i = (i + 1) & mask;
	return &table[i];
}

/* Makes room for one more name; keeps the table at most half full. */
static bool reserve(struct fathom_worker *w)
{
	const struct fathom_names *names;
	const size_t size = w->origins.table.n ? w->origins.table.n * 2 : FIRST_TABLE;

	if (!fathom_array_room(&w->origins.names, 1))
		return false;
	if ((w->origins.names.n + 1) * 2 <= w->origins.table.n)
		return true;
	w->origins.table.n = 0;
	if (!fathom_array_room(&w->origins.table, size))
		return false;
	w->origins.table.n = size;
	memset(w->origins.table.items, 0, size * sizeof(uint32_t));
	names = w->origins.names.items;
	for (size_t i = 0; i < w->origins.names.n; i++)
		*find_place(w, names[i].serial, names[i].off) = (uint32_t)i + 1;
	return true;
}

/* A unit on the way from an entry to its origin. */
struct step {
	struct fathom_unit unit;
	bool opened; /* opened here, to be closed */
};

static bool is_inside(const struct fathom_unit *unit, uint64_t die_off)
{
	return die_off >= unit->header.die_off && die_off < unit->header.end_off;
}

/* Moves @s to the unit that holds the entry at @off, in the same or the supplementary file. */
static bool enter_unit(struct fathom_worker *w, struct fathom_debug *d, struct step *s,
		       enum fathom_ref_kind kind, uint64_t off)
{
	const bool sup = kind == FATHOM_REF_SUP || s->unit.dwarf == &d->sup_view;
	struct fathom_units *units = sup ? &d->sup_units : &d->units;
	struct fathom_die root;
	struct step next = { .opened = true };
	uint64_t unit_off;

	if (kind == FATHOM_REF_INFO && is_inside(&s->unit, off))
		return true;
	/* A split unit refers to itself only. */
	if (!sup && s->unit.dwarf != &d->view)
		return false;
	if (!fathom_units_containing(units, off, &unit_off) ||
	    fathom_worker_open_unit(w, units->dwarf, unit_off, &next.unit, &root, NULL))
		return false;
	if (s->opened)
		fathom_worker_close_unit(w, &s->unit);
	*s = next;
	return is_inside(&s->unit, off);
}

/* Reads the entry at @off of @unit. */
static bool read_die(const struct fathom_unit *unit, uint64_t off, struct fathom_die *ret)
{
	struct fathom_die_reader r;
	uint32_t depth;

	fathom_die_reader_init(&r, unit, off);
	return fathom_die_next(&r, UINT32_MAX, ret, &depth, NULL) == FATHOM_OK;
}

/* Returns what the language of the unit says about its names. */
static uint32_t name_flags(const struct fathom_unit *unit)
{
	switch (unit->language) {
	case DW_LANG_Ada83:
	case DW_LANG_Ada95:
	case DW_LANG_Ada2005:
	case DW_LANG_Ada2012:
		return FATHOM_BLOCK_ADA;
	default:
		return fathom_unit_is_c(unit) ? FATHOM_BLOCK_UNMANGLED : 0;
	}
}

static void take_names(struct fathom_names *names, const struct fathom_unit *unit,
		       const struct fathom_die *die)
{
	if (!names->linkage.size)
		names->linkage =
			fathom_unit_string(unit, fathom_die_attr(die, FATHOM_AT_LINKAGE_NAME));
	if (!names->name.size) {
		names->name = fathom_unit_string(unit, fathom_die_attr(die, FATHOM_AT_NAME));
		if (names->name.size)
			names->flags = name_flags(unit);
	}
}

/* Takes the declaration's file and line from the entry at @die_off, unless they are known. */
static void take_declaration(struct fathom_names *names, const struct fathom_unit *unit,
			     uint64_t die_off, bool is_own_unit)
{
	struct fathom_entry entry;
	const struct fathom_attr *a;

	fathom_entry_read(unit, die_off, &entry);
	a = fathom_entry_attr(&entry, FATHOM_ENTRY_DECL_LINE);
	if (a && !names->decl_line && a->value <= UINT32_MAX)
		names->decl_line = (uint32_t)a->value;
	a = fathom_entry_attr(&entry, FATHOM_ENTRY_DECL_FILE);
	if (a && !names->has_decl_file) {
		names->has_decl_file = true;
		if (is_own_unit && a->value < FATHOM_BLOCK_NONE)
			names->decl_file = (uint32_t)a->value;
	}
}

static bool is_complete(const struct fathom_names *names, bool declarations)
{
	return names->name.size && names->linkage.size &&
	       (!declarations || (names->has_decl_file && names->decl_line));
}

/* Returns the reference from @die to the entry with its names, or NULL. */
static const struct fathom_attr *origin_of(const struct fathom_die *die)
{
	const struct fathom_attr *a = fathom_die_attr(die, FATHOM_AT_ORIGIN);

	return a ? a : fathom_die_attr(die, FATHOM_AT_SPECIFICATION);
}

/* Follows origins and specifications from @die until all is found or the chain ends. */
static void collect_names(struct fathom_worker *w, struct fathom_debug *d,
			  const struct fathom_unit *unit, const struct fathom_die *die,
			  bool declarations, struct fathom_names *names)
{
	struct step s = { .unit = *unit };
	struct fathom_die here = *die;

	names->decl_file = FATHOM_BLOCK_NONE;
	take_names(names, unit, die);
	if (declarations)
		take_declaration(names, unit, die->off, true);
	for (int i = 0; i < FATHOM_MAX_ORIGIN_CHAIN && !is_complete(names, declarations); i++) {
		const struct fathom_attr *ref = origin_of(&here);
		uint64_t off;
		const enum fathom_ref_kind kind = fathom_unit_reference(&s.unit, ref, &off);

		if (kind == FATHOM_REF_NONE || !enter_unit(w, d, &s, kind, off) ||
		    !read_die(&s.unit, off, &here))
			break;
		take_names(names, &s.unit, &here);
		if (declarations)
			take_declaration(names, &s.unit, here.off, !s.opened);
	}
	if (s.opened)
		fathom_worker_close_unit(w, &s.unit);
}

uint32_t fathom_origin_names(struct fathom_worker *w, struct fathom_debug *d,
			     const struct fathom_unit *unit, const struct fathom_die *die)
{
	struct fathom_names names = { .serial = unit->dwarf->serial, .off = die->off };
	const struct fathom_attr *ref = fathom_die_attr(die, FATHOM_AT_ORIGIN);
	uint32_t *place;
	uint64_t off;

	/*
	 * All copies of one inlined function have one origin and no names of their own; but the
	 * variants of a constructor or destructor each state a linkage name.
	 */
	if (fathom_die_attr(die, FATHOM_AT_LINKAGE_NAME) || fathom_die_attr(die, FATHOM_AT_NAME))
		ref = NULL;
	switch (fathom_unit_reference(unit, ref, &off)) {
	case FATHOM_REF_INFO:
		names.off = off;
		break;
	case FATHOM_REF_SUP:
		names.off = off;
		names.serial = unit->dwarf->sup->serial;
		break;
	default:
		break;
	}
	if (!reserve(w))
		return FATHOM_NO_NAMES;
	place = find_place(w, names.serial, names.off);
	if (!*place) {
		collect_names(w, d, unit, die, w->session->compat & FATHOM_DECLARATIONS, &names);
		w->origins.names.items[w->origins.names.n++] = names;
		*place = (uint32_t)w->origins.names.n;
	}
	return *place - 1;
}

void fathom_origin_declaration(struct fathom_worker *w, struct fathom_debug *d,
			       const struct fathom_unit *unit, const struct fathom_die *die,
			       struct fathom_names *ret)
{
	*ret = (struct fathom_names){ 0 };
	collect_names(w, d, unit, die, true, ret);
}
