/* SPDX-License-Identifier: MIT */
/*
 * What is kept of one unit: which functions it has where, and the blocks of those that were asked
 * for. Published whole by one compare-and-swap and evicted whole; each block has a slot of its own.
 */
#ifndef FATHOM_MODULE_UNIT_DATA_H
#define FATHOM_MODULE_UNIT_DATA_H

#include "fathom/symbolize.h"
#include "host/base/array.h"
#include "host/base/context.h"
#include "host/module/debug.h"
#include "safe/index/block.h"

struct fathom_function_range {
	uint64_t low;
	uint64_t high;
	uint64_t max_high; /* of this and all before it: functions may overlap */
	uint64_t die_off;
};

struct fathom_function_ranges {
	FATHOM_ARRAY_OF(struct fathom_function_range);
};

/* A worker's scratch for the functions of one unit. */
struct fathom_function_scratch {
	struct fathom_function_ranges ranges;
	struct fathom_keyed_array keyed;
};

void fathom_function_scratch_deinit(struct fathom_function_scratch *scratch);

struct fathom_unit_data {
	struct fathom_retired retired; /* first: eviction frees through it */
	_Atomic uint64_t bytes;        /* counted against the budget */
	enum fathom_reason no_split; /* why its functions and calls are missing; 0: they are not */
	uint64_t line_off;           /* FATHOM_NO_LINES: none */
	uint32_t n_functions;
	fathom_err err;                          /* why functions may be missing */
	bool full;                               /* nested functions were looked for, too */
	struct fathom_function_range *functions; /* sorted by low */
	/* 2 n + 1 slots: between the functions stands code that belongs to none */
	_Atomic(struct fathom_block *) *blocks;
};

struct fathom_worker;
struct fathom_want;

#define FATHOM_NO_LINES UINT64_MAX

/* A unit whose entries can be read: of the module itself, or of the split file it points to. */
struct fathom_open_unit {
	struct fathom_unit unit;
	struct fathom_unit skeleton; /* the same as unit, but for split units */
	struct fathom_die root;      /* of unit */
	struct fathom_str comp_dir;
	uint64_t line_off;
	const struct fathom_split_file *split;
	uint64_t split_off;
	enum fathom_reason no_split; /* as in unit_data */
	bool is_split;
};

/* Opens the unit at @off of the module's DWARF, and its split unit if it has one. */
fathom_err fathom_unit_data_open(struct fathom_worker *w, struct fathom_debug *d, uint64_t off,
				 struct fathom_open_unit *ret, struct fathom_errinfo *reterr);
void fathom_unit_data_close(struct fathom_worker *w, const struct fathom_open_unit *u);

/*
 * Finds the functions of @u. With @full, reads all entries; else skips what is below functions and
 * types where fathom_unit_is_flat(), and misses the functions there.
 */
struct fathom_unit_data *fathom_unit_data_create(struct fathom_worker *w, struct fathom_debug *d,
						 const struct fathom_open_unit *u, bool full);
void fathom_unit_data_free(struct fathom_unit_data *data, struct fathom_memory *m);

/*
 * The slot of the block for @svma: odd for function (slot - 1) / 2, even for what lies before
 * function slot / 2.
 */
uint32_t fathom_unit_data_slot(const struct fathom_unit_data *data, uint64_t svma);

struct fathom_want;

/* The want for all the code of @slot; die_off is FATHOM_NO_DIE between functions. */
void fathom_unit_data_want(const struct fathom_unit_data *data, uint32_t slot,
			   struct fathom_want *ret);

/* Of functions that are folded into one so many are looked at. */
#define FATHOM_MAX_FOLDED 64

/*
 * Of the functions whose code is exactly that of the function of @slot, itself one of them, the
 * entry of number @n; false when there are no more.
 */
bool fathom_unit_data_folded(const struct fathom_unit_data *data, uint32_t slot, uint32_t n,
			     uint64_t *ret_die_off);

#endif
