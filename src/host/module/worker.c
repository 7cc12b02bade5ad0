/* SPDX-License-Identifier: MIT */
#include "host/module/worker.h"

#include <stdlib.h>

/* Entries of units, or batches of 64 rows, between two questions: some milliseconds. */
#define ENTRIES_PER_QUESTION 4096

struct fathom_worker *fathom_worker_acquire(struct fathom *session)
{
	struct fathom_worker *w = NULL;

	for (size_t i = 0; i < FATHOM_IDLE_WORKERS && !w; i++)
		if (atomic_load_explicit(&session->idle[i], memory_order_relaxed))
			w = atomic_exchange(&session->idle[i], NULL);
	if (!w) {
		w = fathom_alloc_apart(sizeof *w);
		if (w)
			w->session = session;
	}
	if (w)
		w->pace = fathom_pace_init(session, ENTRIES_PER_QUESTION);
	return w;
}

void fathom_worker_release(struct fathom_worker *w)
{
	if (w)
		atomic_store_explicit(&w->session->destroy_worker, fathom_worker_destroy,
				      memory_order_relaxed);
	for (size_t i = 0; w && i < FATHOM_IDLE_WORKERS; i++) {
		struct fathom_worker *empty = NULL;

		if (atomic_compare_exchange_strong(&w->session->idle[i], &empty, w))
			return;
	}
	fathom_worker_destroy(w);
}

void fathom_worker_destroy(struct fathom_worker *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < FATHOM_ABBREV_SLOTS; i++) {
		free(w->slot[i].table.abbrevs);
		free(w->slot[i].table.steps);
	}
	fathom_lines_deinit(&w->lines);
	fathom_function_scratch_deinit(&w->functions);
	fathom_origins_deinit(&w->origins);
	fathom_block_scratch_deinit(&w->blocks);
	fathom_array_free(&w->wants);
	fathom_array_free(&w->pool);
	free(w);
}

static bool same_encoding(struct fathom_encoding a, struct fathom_encoding b)
{
	return a.version == b.version && a.address_size == b.address_size &&
	       a.offset_size == b.offset_size;
}

/* The slot that holds the table, or the one to put it in. Slots in use are not given away. */
static struct fathom_abbrev_slot *find_slot(struct fathom_worker *w, uint64_t serial, uint64_t off,
					    struct fathom_encoding e, bool *ret_found)
{
	struct fathom_abbrev_slot *oldest = NULL;

	*ret_found = true;
	for (size_t i = 0; i < FATHOM_ABBREV_SLOTS; i++) {
		struct fathom_abbrev_slot *s = &w->slot[i];

		if (s->serial == serial && s->table.off == off &&
		    same_encoding(s->table.encoding, e))
			return s;
		if (!s->pins && (!oldest || s->used < oldest->used))
			oldest = s;
	}
	*ret_found = false;
	return oldest;
}

/* Gives the table room for twice as much. */
static bool grow_table(struct fathom_abbrevs *t)
{
	const uint32_t n = t->cap_abbrevs ? t->cap_abbrevs * 2 : 256;
	const uint32_t steps = t->cap_steps ? t->cap_steps * 2 : 1024;
	void *a = realloc(t->abbrevs, n * sizeof *t->abbrevs);
	void *s;

	if (a) {
		t->abbrevs = a;
		t->cap_abbrevs = n;
	}
	s = realloc(t->steps, steps * sizeof *t->steps);
	if (s) {
		t->steps = s;
		t->cap_steps = steps;
	}
	return a && s;
}

/* The compiled abbreviations at @off, pinned. */
static fathom_err pin_abbrevs(struct fathom_worker *w, const struct fathom_dwarf *dwarf,
			      uint64_t off, struct fathom_encoding e, uint64_t last,
			      const struct fathom_abbrevs **ret, struct fathom_errinfo *reterr)
{
	bool found;
	struct fathom_abbrev_slot *s = find_slot(w, dwarf->serial, off, e, &found);
	fathom_err err = FATHOM_OK;

	if (!s)
		return fathom_fail(reterr, FATHOM_E_LIMIT, ".debug_abbrev", off,
				   "too many units refer to each other");
	if (!found) {
		s->serial = 0;
		do {
			if (err == FATHOM_GROW && !grow_table(&s->table))
				return fathom_fail_memory(reterr);
			err = fathom_abbrevs_read(dwarf, off, e, last, &s->table, reterr);
		} while (err == FATHOM_GROW);
		FATHOM_TRY(err);
		s->serial = last ? 0 : dwarf->serial;
	}
	s->used = ++w->clock;
	s->pins++;
	*ret = &s->table;
	return FATHOM_OK;
}

void fathom_worker_close_unit(struct fathom_worker *w, const struct fathom_unit *unit)
{
	for (size_t i = 0; i < FATHOM_ABBREV_SLOTS; i++)
		if (&w->slot[i].table == unit->abbrevs)
			w->slot[i].pins--;
}

/* Opens the unit at @off with all its abbreviations, or those that its root needs. */
static fathom_err open_unit(struct fathom_worker *w, const struct fathom_dwarf *dwarf, uint64_t off,
			    bool root_only, struct fathom_unit *ret_unit,
			    struct fathom_die *ret_root, struct fathom_errinfo *reterr)
{
	struct fathom_unit_header header;
	struct fathom_unit unit = { 0 };
	struct fathom_cursor c;
	uint64_t last = 0;
	fathom_err err;

	FATHOM_TRY(fathom_unit_header_read(dwarf, off, &header, reterr));
	if (root_only) {
		c = cur_init(bytes_from(dwarf->section[FATHOM_DEBUG_INFO], header.die_off),
			     dwarf->swap);
		last = cur_uleb(&c);
	}
	FATHOM_TRY(pin_abbrevs(w, dwarf, header.abbrev_off, header.encoding, last, &unit.abbrevs,
			       reterr));
	err = fathom_unit_open(dwarf, &header, unit.abbrevs, ret_unit, ret_root, reterr);
	if (err)
		fathom_worker_close_unit(w, &unit);
	return err;
}

fathom_err fathom_worker_open_unit(struct fathom_worker *w, const struct fathom_dwarf *dwarf,
				   uint64_t off, struct fathom_unit *ret_unit,
				   struct fathom_die *ret_root, struct fathom_errinfo *reterr)
{
	return open_unit(w, dwarf, off, false, ret_unit, ret_root, reterr);
}

fathom_err fathom_worker_open_root(struct fathom_worker *w, const struct fathom_dwarf *dwarf,
				   uint64_t off, struct fathom_unit *ret_unit,
				   struct fathom_die *ret_root, struct fathom_errinfo *reterr)
{
	return open_unit(w, dwarf, off, true, ret_unit, ret_root, reterr);
}
