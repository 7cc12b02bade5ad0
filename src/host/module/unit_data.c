/* SPDX-License-Identifier: MIT */
#include "host/module/unit_data.h"

#include <stdlib.h>

#include "host/file/file.h"
#include "host/module/lines.h"
#include "host/module/module.h"
#include "host/module/split.h"
#include "safe/base/sort.h"
#include "safe/dwarf/ranges.h"

/* Reads what only the skeleton or plain unit states. */
static void read_root(struct fathom_open_unit *u, const struct fathom_die *root)
{
	const struct fathom_attr *lines = fathom_die_attr(root, FATHOM_AT_STMT_LIST);

	u->comp_dir = fathom_unit_string(&u->skeleton, fathom_die_attr(root, FATHOM_AT_COMP_DIR));
	u->line_off = lines ? lines->value : FATHOM_NO_LINES;
}

fathom_err fathom_unit_data_open(struct fathom_worker *w, struct fathom_debug *d, uint64_t off,
				 struct fathom_open_unit *ret, struct fathom_errinfo *reterr)
{
	struct fathom_open_unit u = { 0 };
	fathom_err err;

	FATHOM_TRY(fathom_worker_open_unit(w, &d->view, off, &u.skeleton, &u.root, reterr));
	u.unit = u.skeleton;
	read_root(&u, &u.root);
	if (fathom_die_attr(&u.root, FATHOM_AT_DWO_NAME)) {
		err = fathom_split_find(w, d, &u, &u.split, &u.split_off);
		if (err)
			u.no_split = fathom_reason_of(err);
		if (!err)
			err = fathom_worker_open_unit(w, &u.split->view, u.split_off, &u.unit,
						      &u.root, reterr);
		else if (err != FATHOM_E_CANCELLED)
			err = FATHOM_END;
		if (err < 0) {
			fathom_worker_close_unit(w, &u.skeleton);
			return err;
		}
		u.is_split = err == FATHOM_OK;
		if (u.is_split)
			fathom_unit_split(&u.unit, &u.skeleton);
	}
	*ret = u;
	return FATHOM_OK;
}

void fathom_unit_data_close(struct fathom_worker *w, const struct fathom_open_unit *u)
{
	if (u->is_split)
		fathom_worker_close_unit(w, &u->unit);
	fathom_worker_close_unit(w, &u->skeleton);
}

void fathom_function_scratch_deinit(struct fathom_function_scratch *scratch)
{
	fathom_array_free(&scratch->ranges);
	fathom_array_free(&scratch->keyed);
}

/* Adds the ranges of function @die where the module has code. */
static fathom_err add_function(struct fathom_worker *w, const struct fathom_object *code,
			       const struct fathom_unit *unit, const struct fathom_die *die,
			       uint64_t *left, struct fathom_errinfo *reterr)
{
	struct fathom_ranges r;
	uint64_t low;
	uint64_t high;
	fathom_err err;

	if (!fathom_ranges_of_die(&r, unit, die, left))
		return FATHOM_OK;
	while (!(err = fathom_ranges_next(&r, &low, &high, reterr))) {
		struct fathom_function_range *f;

		if (!fathom_object_has_code(code, low))
			continue;
		if (!fathom_array_room(&w->functions.ranges, 1))
			return FATHOM_E_MEMORY;
		f = w->functions.ranges.items + w->functions.ranges.n++;
		*f = (struct fathom_function_range){ low, high, high, die->off };
	}
	return err < 0 ? err : FATHOM_OK;
}

/* Collects the functions of @unit in the worker's ranges. */
static fathom_err find_functions(struct fathom_worker *w, const struct fathom_object *code,
				 const struct fathom_unit *unit, bool full,
				 struct fathom_errinfo *reterr)
{
	struct fathom_die_reader r;
	struct fathom_die die;
	uint32_t depth;
	uint64_t left = fathom_ranges_allowed(unit->dwarf, unit->skeleton);
	fathom_err err;

	w->functions.ranges.n = 0;
	fathom_die_reader_init(&r, unit, unit->header.die_off);
	r.passing = !full;
	while (!(err = fathom_die_next(&r, FATHOM_DIE_BIT(FATHOM_DIE_FUNCTION), &die, &depth,
				       reterr))) {
		if (!fathom_keeps_pace(&w->pace))
			return FATHOM_E_CANCELLED;
		FATHOM_TRY(add_function(w, code, unit, &die, &left, reterr));
		if (!full)
			(void)fathom_die_skip_children(&r, &die);
	}
	return err < 0 ? err : FATHOM_OK;
}

/* Sorts the worker's ranges into @data, which has room for them. */
static bool sort_functions(struct fathom_worker *w, struct fathom_unit_data *data)
{
	const struct fathom_function_range *from = w->functions.ranges.items;
	const size_t n = data->n_functions;
	struct fathom_keyed *keyed;

	w->functions.keyed.n = 0;
	if (!fathom_array_room(&w->functions.keyed, 2 * n))
		return false;
	keyed = w->functions.keyed.items;
	for (size_t i = 0; i < n; i++)
		keyed[i] = (struct fathom_keyed){ from[i].low, i };
	fathom_sort_keyed(keyed, keyed + n, n);
	for (size_t i = 0; i < n; i++) {
		data->functions[i] = from[keyed[i].value];
		if (i && data->functions[i - 1].max_high > data->functions[i].max_high)
			data->functions[i].max_high = data->functions[i - 1].max_high;
	}
	return true;
}

struct fathom_unit_data *fathom_unit_data_create(struct fathom_worker *w, struct fathom_debug *d,
						 const struct fathom_open_unit *u, bool full)
{
	struct fathom_module *m = d->module;
	struct fathom_unit_data *data;
	struct fathom_errinfo info;
	fathom_err err;
	size_t n;
	size_t bytes;

	full = full || !fathom_unit_is_flat(&u->unit);
	err = find_functions(w, m->main, &u->unit, full, &info);
	if (err == FATHOM_E_MEMORY || err == FATHOM_E_CANCELLED)
		return NULL;
	if (err) {
		fathom_errinfo_set_file(&info,
					u->is_split ? u->split->path : d->object->file->path);
		fathom_notes_add(m->notes, &info);
	}
	n = w->functions.ranges.n;
	if (n > UINT32_MAX / 4)
		return NULL;
	bytes = sizeof *data + n * sizeof *data->functions + (2 * n + 1) * sizeof *data->blocks;
	data = fathom_memory_alloc(&m->session->memory, bytes);
	if (!data)
		return NULL;
	data->functions = (void *)(data + 1);
	data->blocks = (void *)(data->functions + n);
	data->n_functions = (uint32_t)n;
	data->full = full;
	data->err = err;
	data->line_off = u->line_off;
	data->no_split = u->no_split;
	atomic_init(&data->bytes, bytes);
	if (!sort_functions(w, data)) {
		fathom_unit_data_free(data, &m->session->memory);
		return NULL;
	}
	return data;
}

void fathom_unit_data_free(struct fathom_unit_data *data, struct fathom_memory *m)
{
	if (!data)
		return;
	for (size_t i = 0; i < 2 * (size_t)data->n_functions + 1; i++)
		free(atomic_load_explicit(&data->blocks[i], memory_order_relaxed));
	fathom_memory_free(m, data, (size_t)atomic_load(&data->bytes));
}

uint32_t fathom_unit_data_slot(const struct fathom_unit_data *data, uint64_t svma)
{
	const struct fathom_function_range *f = data->functions;
	const uint32_t low = (uint32_t)FATHOM_BISECT(data->n_functions, i, f[i].low <= svma);

	for (uint32_t i = low; i && f[i - 1].max_high > svma; i--)
		if (f[i - 1].high > svma)
			return 2 * (i - 1) + 1;
	return 2 * low;
}

/* Returns whether functions @a and @b have the same code. */
static bool is_same_code(const struct fathom_function_range *a,
			 const struct fathom_function_range *b)
{
	return a->low == b->low && a->high == b->high;
}

void fathom_unit_data_want(const struct fathom_unit_data *data, uint32_t slot,
			   struct fathom_want *ret)
{
	const struct fathom_function_range *f = data->functions;
	const uint32_t i = slot / 2;

	*ret = (struct fathom_want){ .slot = slot, .die_off = FATHOM_NO_DIE };
	if (slot & 1) {
		ret->low = f[i].low;
		ret->high = f[i].high;
		ret->die_off = f[i].die_off;
		ret->folded = (i && is_same_code(&f[i - 1], &f[i])) ||
			      (i + 1 < data->n_functions && is_same_code(&f[i], &f[i + 1]));
	} else {
		ret->low = i ? f[i - 1].max_high : 0;
		ret->high = i < data->n_functions ? f[i].low : UINT64_MAX;
	}
	ret->from = ret->low;
	ret->to = ret->high;
}

bool fathom_unit_data_folded(const struct fathom_unit_data *data, uint32_t slot, uint32_t n,
			     uint64_t *ret_die_off)
{
	const struct fathom_function_range *f = data->functions;
	const uint32_t own = slot / 2;
	uint32_t i = own;

	while (i && own - i < FATHOM_MAX_FOLDED - 1 && is_same_code(&f[i - 1], &f[own]))
		i--;
	if (n >= FATHOM_MAX_FOLDED || data->n_functions - i <= n ||
	    !is_same_code(&f[i + n], &f[own]))
		return false;
	*ret_die_off = f[i + n].die_off;
	return true;
}
