/* SPDX-License-Identifier: MIT */
/*
 * Data that is kept of one unit: the ranges of its functions, and the blocks of those asked for.
 * Published whole by one compare-and-swap and evicted whole; each block has its own slot.
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
	uint64_t max_high; /* highest high of this and all before it: functions may overlap */
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
	enum fathom_reason no_split;   /* why its functions and calls are missing, or 0 */
	uint64_t line_off;             /* FATHOM_NO_LINES: none */
	uint32_t n_functions;
	fathom_err err;                          /* why functions may be missing */
	bool full;                               /* nested functions were looked for, too */
	struct fathom_function_range *functions; /* sorted by low */
	/* 2 n + 1 slots: even ones are for the code between functions */
	_Atomic(struct fathom_block *) *blocks;
};

struct fathom_worker;
struct fathom_want;

#define FATHOM_NO_LINES UINT64_MAX

/* A unit whose entries can be read: one of the module itself, or the split unit it stands for. */
struct fathom_open_unit {
	struct fathom_unit unit;
	struct fathom_unit skeleton; /* the same as unit, except for split units */
	struct fathom_die root;      /* of unit */
	struct fathom_str comp_dir;
	uint64_t line_off;
	const struct fathom_split_file *split;
	uint64_t split_off;
	enum fathom_reason no_split; /* as in unit_data */
	bool is_split;
};

/*
 * Opens the unit at @off of the module's DWARF, and its split unit if it has one. Returns
 * FATHOM_E_CANCELLED if the call was given up while that was looked for.
 */
fathom_err fathom_unit_data_open(struct fathom_worker *w, struct fathom_debug *d, uint64_t off,
				 struct fathom_open_unit *ret, struct fathom_errinfo *reterr);
void fathom_unit_data_close(struct fathom_worker *w, const struct fathom_open_unit *u);

/*
 * Finds the functions of @u. With @full, reads all entries; else, where fathom_unit_is_flat(),
 * skips the children of functions and types, and misses the functions there.
 */
struct fathom_unit_data *fathom_unit_data_create(struct fathom_worker *w, struct fathom_debug *d,
						 const struct fathom_open_unit *u, bool full);
void fathom_unit_data_free(struct fathom_unit_data *data, struct fathom_memory *m);

/*
 * Returns the slot of the block for @svma: odd for function (slot - 1) / 2, even for the code
 * before function slot / 2.
 */
uint32_t fathom_unit_data_slot(const struct fathom_unit_data *data, uint64_t svma);

struct fathom_want;

/* Fills in the want for all the code of @slot; die_off is FATHOM_NO_DIE between functions. */
void fathom_unit_data_want(const struct fathom_unit_data *data, uint32_t slot,
			   struct fathom_want *ret);

/* At most this many functions that were folded into one are looked at. */
#define FATHOM_MAX_FOLDED 64

/*
 * Finds entry @n of the functions whose code is exactly that of the function of @slot, which is one
 * of them. Returns false if there are no more.
 */
bool fathom_unit_data_folded(const struct fathom_unit_data *data, uint32_t slot, uint32_t n,
			     uint64_t *ret_die_off);

#endif
