/* SPDX-License-Identifier: MIT */
#include "host/jit/registered.h"

#include <stdlib.h>

#include "safe/base/sort.h"

void fathom_registered_init(struct fathom_registered *r, struct fathom_jit_code_frames *frames)
{
	*r = (struct fathom_registered){ .frames = frames, .layout = { .address_size = 8 } };
	r->index.memory = frames->memory;
}

void fathom_registered_deinit(struct fathom_registered *r)
{
	fathom_code_table_clear(&r->index);
	fathom_array_free(&r->fdes);
	fathom_array_free(&r->tables);
	fathom_array_free(&r->roots);
}

bool fathom_registered_word(const struct fathom_registered_work *w, uint64_t avma, uint64_t *ret)
{
	return avma % 8 == 0 && fathom_reader_uint(&w->p->memory, avma, 8, false, ret);
}

bool fathom_registered_count(struct fathom_registered_work *w)
{
	return w->to->n_followed++ < FATHOM_MAX_REGISTERED;
}

/* Adds the FDE @e of @cfi; @cie is the last CIE that was read. Damaged ones are left out. */
static bool add_fde(struct fathom_registered_work *w, const struct fathom_cfi *cfi,
		    const struct fathom_cfi_entry *e, struct fathom_cie *cie)
{
	struct fathom_registered_fde f;
	struct fathom_fde fde;

	if ((!cie->version || cie->off != e->cie_off) && fathom_cie_read(cfi, e->cie_off, cie)) {
		cie->version = 0;
		return true;
	}
	if (fathom_fde_read(e, cie, &fde) || fde.low >= fde.high)
		return true;
	f = (struct fathom_registered_fde){ .cfi = cfi };
	f.low = fde.low;
	f.high = fde.high;
	f.off = e->off;
	return fathom_array_push(&w->to->fdes, f);
}

bool fathom_registered_add_section(struct fathom_registered_work *w, uint64_t avma)
{
	const struct fathom_cfi *cfi;
	struct fathom_cie cie = { .version = 0 };
	struct fathom_cfi_reader r;
	struct fathom_cfi_entry e;
	fathom_err err;

	if (!fathom_registered_count(w) || w->to->n_bytes > FATHOM_MAX_REGISTERED_BYTES)
		return false;
	if (w->again) {
		fathom_jit_code_frames_mark(w->to->frames, avma);
		return true;
	}
	err = fathom_jit_code_frames_copy(w->to->frames, &w->p->memory, &w->to->layout, avma, &cfi);
	if (err) {
		w->err = err == FATHOM_E_MEMORY ? err : w->err;
		return false;
	}
	w->to->n_bytes += cfi->section.size;
	/* A section begins with a CIE, or is empty. */
	if (cfi->section.size > 4 && fathom_cie_read(cfi, 0, &cie))
		return false;
	fathom_cfi_reader_init(&r, cfi);
	while (!fathom_cfi_next(&r, &e, NULL))
		if (!e.is_cie && !add_fde(w, cfi, &e, &cie)) {
			w->err = FATHOM_E_MEMORY;
			return false;
		}
	return true;
}

static bool is_same(const struct fathom_registered_table *a,
		    const struct fathom_registered_table *b)
{
	return a->low == b->low && a->high == b->high && a->base == b->base &&
	       a->frames == b->frames && a->avma == b->avma && a->n == b->n;
}

void fathom_registered_add_table(struct fathom_registered_work *w,
				 const struct fathom_registered_table *table)
{
	struct fathom_registered *r = w->to;

	if (!w->again && !fathom_array_push(&r->tables, *table))
		w->err = FATHOM_E_MEMORY;
	for (size_t i = 0; i < w->used.n; i++) {
		struct fathom_registered_table *used = &r->tables.items[w->used.items[i]];

		used->is_there |= is_same(used, table);
	}
}

void fathom_registered_follow(struct fathom_registered_work *w, uint64_t root, fathom_root_fn fn)
{
	struct fathom_registered *r = w->to;
	const size_t before = r->fdes.n + r->tables.n;
	uint64_t first;
	bool is_good = !w->again;

	for (size_t i = 0; i < r->roots.n; i++)
		is_good |= r->roots.items[i] == root;
	if (!is_good || !fathom_registered_word(w, root, &first) || !first || first % 8)
		return;
	fn(w, first);
	if (r->fdes.n + r->tables.n > before && !fathom_array_push(&r->roots, root))
		w->err = FATHOM_E_MEMORY;
}

static bool read_module(const struct fathom_module_at *at, void *data)
{
	struct fathom_registered_work *w = data;

	fathom_libgcc_read(w, at);
	if (!w->err)
		fathom_llvm_cache_read(w, at);
	if (!w->err)
		fathom_dyn_info_read(w, at);
	return !w->err;
}

/* Makes the index; the newest FDE holds. */
static fathom_err make_index(struct fathom_registered *r)
{
	struct fathom_claim_array claims = { 0 };
	fathom_err err = FATHOM_OK;

	if (!r->fdes.n)
		return FATHOM_OK;
	if (!fathom_array_room(&claims, r->fdes.n))
		return FATHOM_E_MEMORY;
	for (size_t i = 0; i < r->fdes.n; i++)
		claims.items[claims.n++] =
			(struct fathom_claim){ r->fdes.items[i].low, r->fdes.items[i].high,
					       r->fdes.n - i };
	err = fathom_code_table_add(&r->index, claims.items, claims.n);
	fathom_array_free(&claims);
	return err == FATHOM_E_MEMORY ? err : FATHOM_OK;
}

fathom_err fathom_registered_read(struct fathom_registered *r, const struct fathom_jit_process *p)
{
	struct fathom_registered_work w = { .to = r, .p = p };

	if (r->is_read)
		return FATHOM_OK;
	r->is_read = true;
	FATHOM_TRY(p->ops->modules(p, read_module, &w));
	FATHOM_TRY(w.err);
	return make_index(r);
}

/* Copies the FDE at index @i of the table @t, and returns it if it covers @avma. */
static fathom_err read_entry(struct fathom_registered *r, const struct fathom_jit_process *p,
			     struct fathom_registered_table *t, uint64_t i, uint64_t avma,
			     const struct fathom_fde **ret)
{
	const struct fathom_fde *fde;
	uint64_t at;
	fathom_err err;

	if (!fathom_reader_uint(&p->memory, t->avma + 8 * i + 4, 4, false, &at))
		return FATHOM_OK;
	at = t->frames + (uint64_t)(int64_t)(int32_t)(uint32_t)at;
	err = fathom_jit_code_frames_copy_fde(r->frames, &p->memory, &r->layout, at, &fde);
	if (!err && avma - fde->low < fde->high - fde->low) {
		t->is_used = true;
		*ret = fde;
	}
	return err == FATHOM_E_MEMORY ? err : FATHOM_OK;
}

/* Finds @avma in the table @t by bisection in memory. */
static fathom_err find_in_table(struct fathom_registered *r, const struct fathom_jit_process *p,
				struct fathom_registered_table *t, uint64_t avma,
				const struct fathom_fde **ret)
{
	uint64_t low = 0;
	uint64_t high = t->n;

	while (low < high) {
		const uint64_t middle = low + (high - low) / 2;
		uint64_t word;

		if (!fathom_reader_uint(&p->memory, t->avma + 8 * middle, 4, false, &word))
			return FATHOM_OK;
		if (t->base + (uint64_t)(int64_t)(int32_t)(uint32_t)word <= avma)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? read_entry(r, p, t, low - 1, avma, ret) : FATHOM_OK;
}

/* Reads the FDE @f; *@ret stays NULL if it is damaged, or another one by now. */
static fathom_err read_indexed(struct fathom_registered *r, const struct fathom_jit_process *p,
			       struct fathom_registered_fde *f, const struct fathom_fde **ret)
{
	const struct fathom_fde *fde = NULL;
	const fathom_err err = f->cfi ? fathom_jit_code_frames_read(r->frames, f->cfi, f->off, &fde)
				      : fathom_jit_code_frames_copy_fde(r->frames, &p->memory,
									&r->layout, f->off, &fde);

	if (!err && fde->low == f->low && fde->high == f->high) {
		f->is_used = true;
		*ret = fde;
	}
	return err == FATHOM_E_MEMORY ? err : FATHOM_OK;
}

/* Returns whether the entries of the FDEs that were found still have them. */
static bool entries_stayed(const struct fathom_registered *r, const struct fathom_jit_process *p)
{
	bool stayed = true;
	uint64_t fde;

	for (size_t i = 0; i < r->fdes.n && stayed; i++)
		stayed = !r->fdes.items[i].is_used || !r->fdes.items[i].entry ||
			 (fathom_reader_uint(&p->memory, r->fdes.items[i].entry, 8, false, &fde) &&
			  fde == r->fdes.items[i].off);
	return stayed;
}

fathom_err fathom_registered_find(struct fathom_registered *r, const struct fathom_jit_process *p,
				  uint64_t avma, const struct fathom_fde **ret)
{
	const struct fathom_claim *c;

	*ret = NULL;
	FATHOM_TRY(fathom_registered_read(r, p));
	c = fathom_code_table_at(&r->index, avma);
	if (c)
		return read_indexed(r, p, &r->fdes.items[r->fdes.n - c->order], ret);
	for (size_t i = 0; i < r->tables.n && !*ret; i++)
		if (avma - r->tables.items[i].low <
		    r->tables.items[i].high - r->tables.items[i].low)
			FATHOM_TRY(find_in_table(r, p, &r->tables.items[i], avma, ret));
	return FATHOM_OK;
}

/* Returns whether the tables that were used are there again. */
static bool tables_are_there(const struct fathom_registered_work *w)
{
	for (size_t i = 0; i < w->used.n; i++)
		if (!w->to->tables.items[w->used.items[i]].is_there)
			return false;
	return true;
}

/* Reads the lists again. */
static bool lists_stayed(struct fathom_registered_work *w)
{
	struct fathom_registered *r = w->to;
	bool is_used = fathom_jit_code_frames_unmark(r->frames);

	for (size_t i = 0; i < r->tables.n; i++) {
		r->tables.items[i].is_there = false;
		if (r->tables.items[i].is_used && !fathom_array_push(&w->used, i))
			return false;
	}
	is_used |= w->used.n != 0;
	r->n_followed = 0;
	return !is_used ||
	       (!w->p->ops->modules(w->p, read_module, w) && !w->err && tables_are_there(w));
}

bool fathom_registered_stayed(struct fathom_registered *r, const struct fathom_jit_process *p)
{
	struct fathom_registered_work w = { .to = r, .p = p, .again = true };
	bool stayed = true;

	if (p->is_live)
		stayed = lists_stayed(&w) && entries_stayed(r, p) &&
			 fathom_jit_code_frames_stayed(r->frames, &p->memory);
	fathom_array_free(&w.used);
	return stayed;
}
