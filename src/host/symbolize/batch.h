/* SPDX-License-Identifier: MIT */
/*
 * The shared state of a batch being answered. symbolize.c runs it; batch_units.c finds lines and
 * inlined calls; batch_names.c finds names and completes the answers.
 */
#ifndef FATHOM_SYMBOLIZE_BATCH_H
#define FATHOM_SYMBOLIZE_BATCH_H

#include "host/base/progress.h"
#include "host/module/debug.h"
#include "host/module/worker.h"
#include "host/symbolize/answers.h"
#include "safe/index/index.h"

/* Most addresses that are looked up by a pass over the symbols, without an index. */
#define FATHOM_SCAN_LIMIT 16

/* The state of one address while it is being answered, in sorted order. */
struct fathom_query {
	uint64_t svma;  /* address to look up: one less for return addresses */
	uint32_t index; /* of its answer */
	bool done;      /* a unit answered it */
};

struct fathom_job;

struct fathom_batch {
	struct fathom_module *module;
	struct fathom_debug *debug; /* NULL: names only */
	struct fathom_answers *answers;
	const uint64_t *addresses;
	const uint32_t *places;                /* indexes of the batch's addresses; NULL: all */
	uint64_t bias;                         /* load bias of the module */
	const struct fathom_module_info *info; /* the module in answers; NULL: none */
	struct fathom_query *queries;          /* sorted by svma; NULL: names only */
	size_t n;
	const struct fathom_batch_options *options;
	uint32_t flags; /* of options */
	enum fathom_alias alias;
	enum fathom_reason no_lines;              /* reason for addresses without a line */
	const struct fathom_variables *variables; /* NULL: not requested, or none */
	const struct fathom_index *index;         /* of an earlier run, or NULL */
	struct fathom_symbol_index *symbols;      /* NULL: use the stored index or scan */
	struct fathom_worker *workers[FATHOM_MAX_THREADS];
	struct fathom_job *jobs; /* jobs of the current map; batch_units.c */
	uint32_t *order;
	size_t n_jobs;
	bool few;        /* few addresses: passes, no indexes */
	bool planned;    /* jobs of the first rank exist */
	bool wants_full; /* make the map of all units in parallel to the jobs */
	unsigned threads;
	bool any_code;
	bool any_data;
	bool many;                   /* enough work to release pages */
	_Atomic uint64_t given_back; /* end of the released part of .debug_info */
	_Atomic int32_t err;
};

/* The block with the answer for an address; block is NULL if its lines are not known. */
struct fathom_found {
	struct fathom_block_view view;
	struct fathom_block_row row;
	uint32_t index;
	enum fathom_reason reason; /* why inlined calls may be missing */
	bool has_row;
	bool has_symbol; /* symbol was looked up in this run's index */
	uint32_t symbol; /* symbol's number, or FATHOM_NONE */
};

/* The addresses of a batch that are in one module. */
struct fathom_module_group {
	struct fathom_module *module;
	const uint64_t *addresses;
	const uint32_t *places; /* indexes of the group's addresses; NULL: all */
	size_t n;
	uint64_t bias;                         /* address - bias is the ELF address */
	const struct fathom_module_info *info; /* the module in answers; NULL: none */
};

/* Addresses of a batch that no module has a name for. */
struct fathom_unresolved {
	const struct fathom_batch_options *options;
	const uint64_t *addresses;
	uint32_t *places; /* indexes in addresses and answers; may be reordered */
	size_t n;
	bool in_modules; /* inside modules, without a name there; else in no module */
	struct fathom_answers *answers; /* complete except for names */
};

/* Answers @group: each address gets the answer at its index. */
fathom_err fathom_symbolize_group(const struct fathom_module_group *group,
				  const struct fathom_batch_options *options,
				  struct fathom_answers *answers);

/* Notes the first failure of the batch. */
static inline void fathom_batch_fail(struct fathom_batch *b, fathom_err err)
{
	int32_t none = FATHOM_OK;

	(void)atomic_compare_exchange_strong(&b->err, &none, err);
}

/* Returns whether units answered every address. */
static inline bool fathom_batch_is_done(const struct fathom_batch *b)
{
	for (size_t i = 0; i < b->n; i++)
		if (!b->queries[i].done)
			return false;
	return true;
}

/* Completes the answer of @q from its findings, in the tables of @p. */
void fathom_batch_answer(struct fathom_batch *b, struct fathom_part *p,
			 const struct fathom_query *q, const struct fathom_found *f);

/* Returns whether symbols of several functions may start where the one at @svma does. */
bool fathom_batch_is_folded(const struct fathom_batch *b, uint64_t svma);

/* Opens the debug information and makes the first jobs, which do not need symbols. */
void fathom_batch_open_units(struct fathom_batch *b);

/* Answers the queries that units cover; leaves the others. */
fathom_err fathom_batch_units(struct fathom_batch *b);

#endif
