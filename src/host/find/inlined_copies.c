/* SPDX-License-Identifier: MIT */
/*
 * Inlined copies of functions (DWARF 5, 3.3.8.2): each entry DW_TAG_inlined_subroutine whose
 * function a query names, with the call that it stands for.
 */
#include "host/base/array.h"
#include "host/find/unit_search.h"
#include "host/module/lines.h"
#include "host/module/origin.h"
#include "host/module/unit_data.h"
#include "safe/dwarf/entry.h"
#include "safe/dwarf/ranges.h"

/* A function or inlined copy that encloses the walk's position. */
struct around {
	uint32_t depth;
	uint32_t names; /* index in the worker's names */
};

struct arounds {
	FATHOM_ARRAY_OF(struct around);
};

/* Whether the names of an entry are wanted. */
enum wanted { UNKNOWN, UNWANTED, WANTED };

struct inlined {
	struct fathom_find_task *t;
	const struct fathom_open_unit *u;
	struct arounds around;
	struct fathom_bytes_array wanted; /* enum wanted of each of the worker's names */
	struct fathom_find_name name;
	uint64_t ranges_left;
	bool has_files; /* the line table's files were read */
};

static const struct fathom_names *names_of(const struct inlined *x, uint32_t number)
{
	return x->t->w->origins.names.items + number;
}

/* Returns a function's linkage name if known, else its plain name; data is NULL if it has none. */
static struct fathom_str name_of(const struct inlined *x, uint32_t number)
{
	const struct fathom_names *n = names_of(x, number);

	return n->linkage.size ? n->linkage : n->name;
}

static bool takes(struct inlined *x, uint32_t query)
{
	const struct fathom_find_query *q = &x->t->f->queries[query];

	return q->kind != FATHOM_QUERY_LINE && q->kind != FATHOM_QUERY_BAD &&
	       fathom_find_task_asks(x->t, query) && fathom_find_query_takes_name(q, &x->name);
}

/* Returns whether a query matches the function with names @number; also false without memory. */
static bool is_wanted(struct inlined *x, uint32_t number)
{
	const size_t old = x->wanted.n;
	const struct fathom_str name = name_of(x, number);
	uint8_t *wanted;

	if (number >= old) {
		if (!fathom_array_room(&x->wanted, number + 1 - old))
			return false;
		memset(x->wanted.items + old, UNKNOWN, number + 1 - old);
		x->wanted.n = number + 1;
	}
	wanted = (uint8_t *)x->wanted.items + number;
	if (!name.size)
		return false;
	fathom_find_name_set(&x->name, name);
	if (*wanted == UNKNOWN) {
		*wanted = UNWANTED;
		for (uint32_t i = 0; i < x->t->f->n_queries; i++)
			if (takes(x, i))
				*wanted = WANTED;
	}
	return *wanted == WANTED;
}

static uint64_t number_attr(const struct fathom_die *die, enum fathom_slot slot)
{
	const struct fathom_attr *a = fathom_die_attr(die, slot);

	return a ? a->value : 0;
}

/* Returns the path of the call's file; NULL if unknown, or without memory. */
static const char *call_file(struct inlined *x, const struct fathom_die *die)
{
	struct fathom_worker *w = x->t->w;
	const uint64_t file = number_attr(die, FATHOM_AT_CALL_FILE);

	if (!fathom_die_attr(die, FATHOM_AT_CALL_FILE) || file > UINT32_MAX ||
	    x->u->line_off == FATHOM_NO_LINES)
		return NULL;
	if (!x->has_files && fathom_lines_collect(w, &x->u->unit, x->t->d->module->main,
						  x->u->line_off, NULL, 0, NULL))
		return NULL;
	x->has_files = true;
	w->pool.n = 0;
	if (!fathom_lines_define(w, (uint32_t)file) ||
	    !fathom_lines_path(w, &x->u->unit, x->u->comp_dir, (uint32_t)file, &w->pool) ||
	    w->pool.n > UINT32_MAX)
		return NULL;
	return fathom_arena_strdup(&x->t->arena,
				   (struct fathom_str){ w->pool.items, (uint32_t)w->pool.n });
}

/* Returns the entry point of the copy, else @low, its first address. */
static uint64_t entry_pc(const struct inlined *x, const struct fathom_die *die, uint64_t low)
{
	const struct fathom_unit *unit = &x->u->unit;
	const struct fathom_attr *a;
	struct fathom_entry entry;
	uint64_t at;

	fathom_entry_read(unit, die->off, &entry);
	a = fathom_entry_attr(&entry, FATHOM_ENTRY_ENTRY_PC);
	if (!a)
		return low;
	if (fathom_unit_address(unit, a, &at))
		return fathom_dwarf_address(unit->skeleton, at);
	/* DWARF 5, 2.18: a constant counts from the base, which only a low_pc states for sure. */
	return fathom_die_attr(die, FATHOM_AT_LOW_PC) ? low + a->value : low;
}

/* Finds the address and size of a copy; returns false if it has no code. */
static bool measure(struct inlined *x, const struct fathom_die *die, struct fathom_find_place *ret)
{
	struct fathom_ranges r;
	uint64_t low;
	uint64_t high;
	uint64_t lowest = UINT64_MAX;

	ret->size = 0;
	if (!fathom_ranges_of_die(&r, &x->u->unit, die, &x->ranges_left))
		return false;
	while (fathom_ranges_next(&r, &low, &high, NULL) == FATHOM_OK) {
		if (!fathom_object_has_code(x->t->d->module->main, low))
			continue;
		lowest = low < lowest ? low : lowest;
		ret->size += high - low;
	}
	ret->svma = ret->size ? entry_pc(x, die, lowest) : 0;
	return ret->size && fathom_object_has_code(x->t->d->module->main, ret->svma);
}

static fathom_err add_copy(struct inlined *x, const struct fathom_die *die, uint32_t number)
{
	const struct around *around = x->around.items;
	struct fathom_find_place place = { 0 };
	struct fathom_str caller = { NULL, 0 };

	if (!is_wanted(x, number) || !measure(x, die, &place))
		return FATHOM_OK;
	if (x->around.n)
		caller = name_of(x, around[x->around.n - 1].names);
	place.linkage = fathom_arena_strdup(&x->t->arena, name_of(x, number));
	place.caller = caller.size ? fathom_arena_strdup(&x->t->arena, caller) : NULL;
	place.file = call_file(x, die);
	place.line = (uint32_t)number_attr(die, FATHOM_AT_CALL_LINE);
	if (!place.linkage || (caller.size && !place.caller))
		return FATHOM_E_MEMORY;
	for (uint32_t i = 0; i < x->t->f->n_queries; i++) {
		place.query = i;
		if (takes(x, i) && !fathom_find_task_add(x->t, &place))
			return FATHOM_E_MEMORY;
	}
	return FATHOM_OK;
}

static fathom_err take_entry(struct inlined *x, const struct fathom_die *die, uint32_t depth)
{
	struct around *around = x->around.items;
	const uint32_t number = fathom_origin_names(x->t->w, x->t->d, &x->u->unit, die);

	if (number == FATHOM_NO_NAMES)
		return FATHOM_E_MEMORY;
	while (x->around.n && around[x->around.n - 1].depth >= depth)
		x->around.n--;
	if (die->kind == FATHOM_DIE_INLINED)
		FATHOM_TRY(add_copy(x, die, number));
	if (!fathom_array_push(&x->around, (struct around){ depth, number }))
		return FATHOM_E_MEMORY;
	return FATHOM_OK;
}

static fathom_err walk_unit(struct inlined *x, struct fathom_errinfo *reterr)
{
	const uint32_t kinds =
		FATHOM_DIE_BIT(FATHOM_DIE_FUNCTION) | FATHOM_DIE_BIT(FATHOM_DIE_INLINED);
	struct fathom_die_reader r;
	struct fathom_die die;
	uint32_t depth;
	fathom_err err;

	fathom_origin_reset(x->t->w);
	fathom_die_reader_init(&r, &x->u->unit, x->u->unit.header.die_off);
	while (!(err = fathom_die_next(&r, kinds, &die, &depth, reterr))) {
		if (!fathom_keeps_pace(&x->t->w->pace))
			return FATHOM_E_CANCELLED;
		FATHOM_TRY(take_entry(x, &die, depth));
	}
	return err < 0 ? err : FATHOM_OK;
}

static fathom_err look_in(struct fathom_find_task *t, uint64_t off, struct fathom_errinfo *reterr)
{
	struct fathom_open_unit u;
	struct inlined x = { .t = t, .u = &u };
	fathom_err err = fathom_unit_data_open(t->w, t->d, off, &u, reterr);

	if (err)
		return err;
	x.ranges_left = fathom_ranges_allowed(u.unit.dwarf, u.unit.skeleton);
	err = walk_unit(&x, reterr);
	fathom_unit_data_close(t->w, &u);
	fathom_array_free(&x.around);
	fathom_array_free(&x.wanted);
	fathom_find_name_deinit(&x.name);
	return err;
}

fathom_err fathom_find_inlined(struct fathom_find *f)
{
	for (size_t i = 0; i < f->n_queries; i++)
		if (f->queries[i].kind == FATHOM_QUERY_NAME)
			fathom_find_query_find_literal(&f->queries[i]);
	return fathom_find_units(f, false, look_in);
}
