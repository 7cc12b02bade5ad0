/* SPDX-License-Identifier: MIT */
/* Locates code in GDB's lists and in registries, for walks of stacks. */
#include <stdlib.h>

#include "host/base/clock.h"
#include "host/jit/gdb_work.h"
#include "host/jit/registry_list.h"
#include "host/module/module.h"
#include "safe/base/limits.h"
#include "safe/base/sort.h"

struct fathom_gdb_locator {
	struct fathom_gdb_asking a;    /* about items that never change */
	struct fathom_u64_array asked; /* addresses that were looked up */
	/* Result of fathom_registry_since() for each of them; 0 if no registry has code there. */
	struct fathom_u64_array since;
	uint64_t began;  /* when the lists were read, monotonic clock, ns */
	bool is_walked;  /* the lists were read */
	bool has_missed; /* some symbol file may have been missed, or kept changing */
};

fathom_err fathom_gdb_locator_create(struct fathom_gdb_jit *g, const struct fathom_jit_process *p,
				     struct fathom_gdb_locator **ret)
{
	struct fathom_gdb_locator *l = calloc(1, sizeof *l);

	if (!l)
		return FATHOM_E_MEMORY;
	l->a.g = g;
	l->a.p = p;
	*ret = l;
	return FATHOM_OK;
}

void fathom_gdb_locator_destroy(struct fathom_gdb_locator *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->a.g->known.n; i++) {
		free(fathom_gdb_known_at(l->a.g, i)->holder);
		fathom_gdb_known_at(l->a.g, i)->holder = NULL;
	}
	fathom_gdb_jit_trim(l->a.g);
	fathom_array_free(&l->a.scratch);
	fathom_array_free(&l->asked);
	fathom_array_free(&l->since);
	free(l);
}

fathom_err fathom_gdb_locator_begin(struct fathom_gdb_locator *l)
{
	struct fathom_gdb_asking *a = &l->a;
	struct fathom_gdb_jit *g = a->g;
	const int rounds = a->p->is_live ? FATHOM_MAX_JIT_ROUNDS : 1;
	fathom_err err = FATHOM_E_CORRUPT;

	if (!g->lists.n)
		return FATHOM_OK;
	if (l->is_walked)
		return a->walked == FATHOM_E_MEMORY ? a->walked : FATHOM_OK;
	l->is_walked = true;
	for (size_t i = 0; i < g->known.n; i++)
		fathom_gdb_known_at(g, i)->is_read = false;
	for (int i = 0; i < rounds && fathom_gdb_may_pass(err); i++)
		err = fathom_gdb_walk_again(a);
	a->walked = err;
	if (!err)
		a->walked = fathom_gdb_refresh(a);
	/* Kept facts may be of earlier symbol files in the same memory. */
	if (!a->walked)
		a->walked = fathom_gdb_read_again(a);
	fathom_gdb_note_walk(a, a->walked);
	l->began = (uint64_t)fathom_now_ns();
	return a->walked == FATHOM_E_MEMORY ? a->walked : FATHOM_OK;
}

/* Returns the row of a registry among @items that has code at @avma; NULL if there is none. */
static const struct fathom_gdb_item *row_at(const struct fathom_gdb_items *items, uint64_t avma)
{
	for (size_t i = 0; i < items->n; i++)
		if (items->items[i].serial && avma >= items->items[i].low &&
		    avma < items->items[i].high)
			return &items->items[i];
	return NULL;
}

/*
 * Makes the module of @k, whose symbol file was replaced since the lists were read, of the one that
 * has the code at @avma now. Functions tell when they were published: those that were there before
 * are still the same.
 */
static fathom_err replace_module(struct fathom_gdb_locator *l, struct fathom_gdb_known *k,
				 uint64_t avma)
{
	struct fathom_gdb_items now = { 0 };
	const struct fathom_gdb_item *row = &k->item;
	fathom_err err = FATHOM_OK;

	for (int i = 0; i < FATHOM_GDB_MAX_WALKS && !k->module && row && !err; i++) {
		if (fathom_gdb_walk(&l->a, NULL, &now))
			continue;
		row = row_at(&now, avma);
		k->item = row ? *row : k->item;
		k->is_newer = true;
		err = row ? fathom_gdb_refresh_module(&l->a, k) : FATHOM_OK;
	}
	fathom_array_free(&now);
	return err;
}

/* Makes the holder of @k, once; it has no module if the symbol file is unreadable. */
static fathom_err hold(struct fathom_gdb_locator *l, struct fathom_gdb_known *k, uint64_t avma)
{
	struct fathom_holder *h;

	if (k->holder)
		return FATHOM_OK;
	FATHOM_TRY(fathom_gdb_refresh_module(&l->a, k));
	if (k->item.serial && !k->module && l->a.p->is_live)
		FATHOM_TRY(replace_module(l, k, avma));
	h = calloc(1, sizeof *h);
	if (!h)
		return FATHOM_E_MEMORY;
	h->module = k->module;
	/* It must be what it was when the lists were walked. */
	l->has_missed |=
		k->item.serial
			? !k->module
			: k->sum && (!k->module ||
				     fathom_gdb_sum_of(k->module->main->file->bytes) != k->sum);
	if (k->module) {
		h->name = k->module->main->file->path;
		h->build_id = k->module->main->build_id;
	}
	k->holder = h;
	return FATHOM_OK;
}

/* Notes when the function at @avma, looked up last, was published: before the lists were read. */
static void note_since(struct fathom_gdb_locator *l, const struct fathom_gdb_known *k,
		       uint64_t avma)
{
	const uint64_t since = fathom_registry_since(k->module->main->file->bytes, avma);

	l->since.items[l->since.n - 1] = since;
	l->has_missed |= k->is_newer && (!since || since > l->began);
}

fathom_err fathom_gdb_locator_find(struct fathom_gdb_locator *l, uint64_t avma,
				   struct fathom_place *ret)
{
	const struct fathom_gdb_jit *g = l->a.g;
	struct fathom_gdb_known *k;
	size_t number;

	if (!g->lists.n)
		return FATHOM_OK;
	FATHOM_TRY(fathom_gdb_locator_begin(l));
	if (!fathom_array_push(&l->asked, avma) || !fathom_array_push(&l->since, 0))
		return FATHOM_E_MEMORY;
	if (l->a.walked) {
		l->has_missed |= fathom_gdb_is_changing(&l->a);
		return FATHOM_OK;
	}
	for (int i = 0; i < FATHOM_MAX_JIT_ROUNDS; i++) {
		number = fathom_gdb_jit_number(g, avma);
		if (number == g->known.n) {
			l->has_missed |= !l->a.is_whole;
			return FATHOM_OK;
		}
		k = fathom_gdb_known_at(g, number);
		FATHOM_TRY(hold(l, k, avma));
		if (!k->is_other) {
			if (k->module)
				*ret = (struct fathom_place){
					.holder = k->holder,
					.key = number,
					.is_code = true,
					.source = (uint8_t)fathom_gdb_source_of(&k->item)
				};
			if (k->module && k->item.serial)
				note_since(l, k, avma);
			return FATHOM_OK;
		}
		/* The file has other code than when the table was made. */
		FATHOM_TRY(fathom_gdb_refresh(&l->a));
	}
	l->has_missed = true;
	return FATHOM_OK;
}

/* Returns whether the symbol file @item has code at an address that was looked up. */
static bool has_asked_code(struct fathom_gdb_locator *l, const struct fathom_gdb_item *item)
{
	struct fathom_gdb_known k = { .item = *item };
	bool found = fathom_gdb_read_code(&l->a, &k, NULL) != FATHOM_OK;

	for (uint32_t c = 0; c < k.n_code && !found; c++)
		for (size_t i = 0; i < l->asked.n && !found; i++)
			found = l->asked.items[i] - k.code[c].low < k.code[c].high - k.code[c].low;
	free(k.code);
	return found;
}

/* Returns whether a symbol file of @now that is new has code at an address that was looked up. */
static bool has_newer(struct fathom_gdb_locator *l, const struct fathom_gdb_items *now)
{
	const struct fathom_gdb_jit *g = l->a.g;
	struct fathom_keyed *sorted = malloc((2 * g->known.n + 1) * sizeof *sorted);
	bool found = !sorted;

	for (size_t i = 0; i < g->known.n && sorted; i++)
		sorted[i] = (struct fathom_keyed){ fathom_gdb_known_at(g, i)->item.avma, i };
	if (sorted)
		fathom_sort_keyed(sorted, sorted + g->known.n, g->known.n);
	l->a.n_bytes = 0;
	for (size_t i = 0; i < now->n && !found; i++)
		found = !now->items[i].serial &&
			fathom_gdb_find_known(g, sorted, g->known.n, &now->items[i]) ==
				g->known.n &&
			has_asked_code(l, &now->items[i]);
	free(sorted);
	return found;
}

/* Walks the lists into @now until a walk misses nothing; false if none did. */
static bool walk_whole(struct fathom_gdb_locator *l, struct fathom_gdb_items *now)
{
	const struct fathom_gdb_items *before = &l->a.g->items;

	for (int i = 0; i < FATHOM_GDB_MAX_WALKS; i++)
		if (!fathom_gdb_walk(&l->a, before, now) && fathom_gdb_is_whole(&l->a, before, now))
			return true;
	return false;
}

/* Returns whether the registries have the same function at asked address @i, by @now, or none. */
static bool has_same_function(struct fathom_gdb_locator *l, size_t i,
			      const struct fathom_gdb_items *now)
{
	const struct fathom_gdb_jit *g = l->a.g;
	const uint64_t avma = l->asked.items[i];
	const struct fathom_gdb_item *row = row_at(now, avma);
	const size_t number = fathom_gdb_jit_number(g, avma);
	struct fathom_bytes bytes;

	if (!row)
		return !l->since.items[i];
	if (number < g->known.n && fathom_gdb_known_at(g, number)->item.serial == row->serial)
		return true;
	bytes.size = row->entry.size;
	return !fathom_gdb_check_size(&l->a, bytes.size) &&
	       !fathom_gdb_read_alone(&l->a, row->entry.symfile, &bytes) &&
	       fathom_registry_stays(&l->a.p->memory, row) &&
	       fathom_registry_since(bytes, avma) == l->since.items[i];
}

static bool have_same_functions(struct fathom_gdb_locator *l, const struct fathom_gdb_items *now)
{
	l->a.n_bytes = 0;
	for (size_t i = 0; i < l->asked.n; i++)
		if (!has_same_function(l, i, now))
			return false;
	return true;
}

bool fathom_gdb_locator_stayed(struct fathom_gdb_locator *l)
{
	const struct fathom_gdb_jit *g = l->a.g;
	struct fathom_gdb_items now = { 0 };
	struct fathom_gdb_pair walks = { 0 };
	bool stayed;

	/* A list that could not be read has told nothing. */
	if (!l->a.p->is_live || l->has_missed || !l->asked.n || l->a.walked)
		return !l->has_missed;
	stayed = walk_whole(l, &now) && fathom_gdb_pair_init(&walks, &g->items, &now) &&
		 !has_newer(l, &now);
	for (size_t i = 0; i < g->known.n && stayed; i++)
		if (fathom_gdb_known_at(g, i)->holder)
			stayed = fathom_gdb_has_stayed(&l->a, i, &walks);
	/* A file that went away while it was read is found anew by another walk. */
	for (int i = 1; stayed && !have_same_functions(l, &now); i++)
		stayed = i < FATHOM_GDB_MAX_WALKS && walk_whole(l, &now);
	fathom_gdb_pair_deinit(&walks);
	fathom_array_free(&now);
	return stayed;
}
