/* SPDX-License-Identifier: MIT */
/*
 * A batch of addresses while it is being answered: what symbolize.c, which runs it, shares with
 * batch_units.c, which finds lines and inlined calls, and batch_names.c, which finds names and
 * completes the answers.
 */
#ifndef FATHOM_SYMBOLIZE_BATCH_H
#define FATHOM_SYMBOLIZE_BATCH_H

#include "host/base/progress.h"
#include "host/module/debug.h"
#include "host/module/worker.h"
#include "host/symbolize/answers.h"
#include "safe/index/index.h"

/* Up to this many addresses are looked up by a pass over the symbols, without an index. */
#define FATHOM_SCAN_LIMIT 4

/* The state of one address while it is being answered, in sorted order. */
struct fathom_query {
	uint64_t svma;  /* looked up: one less for return addresses */
	uint32_t index; /* of its answer */
	bool done;      /* a unit knew it */
};

struct fathom_job;

struct fathom_batch {
	struct fathom_module *module;
	struct fathom_debug *debug; /* NULL: names only */
	struct fathom_answers *answers;
	const uint64_t *addresses;
	const uint32_t *places; /* of the batch's addresses, in addresses; NULL: all of them */
	uint64_t bias;          /* of the module: what is looked up is so much less */
	const struct fathom_module_info *info; /* the module as answers have it; NULL: as none */
	struct fathom_query *queries;          /* sorted by svma; NULL: names only */
	size_t n;
	const struct fathom_batch_options *options;
	uint32_t flags; /* of options */
	enum fathom_alias alias;
	enum fathom_reason no_lines;              /* why an address without a line has none */
	const struct fathom_variables *variables; /* NULL: not asked for, or there are none */
	const struct fathom_index *index;         /* of an earlier run, or NULL */
	struct fathom_symbol_index *symbols;      /* NULL: from the index, or scan */
	struct fathom_worker *workers[FATHOM_MAX_THREADS];
	struct fathom_job *jobs; /* of the map being tried; batch_units.c */
	uint32_t *order;
	size_t n_jobs;
	bool few;        /* so few addresses that passes do without indexes */
	bool planned;    /* the jobs of the first rank are made */
	bool wants_full; /* the map of all units will be needed: made beside the jobs */
	unsigned threads;
	bool any_code;
	bool any_data;
	bool many;                   /* worth giving pages back */
	_Atomic uint64_t given_back; /* the end of what was, in .debug_info */
	_Atomic int32_t err;
};

/* A block with the answer for @svma; block is NULL when nothing is known of its lines. */
struct fathom_found {
	struct fathom_block_view view;
	struct fathom_block_row row;
	uint32_t index;
	enum fathom_reason reason; /* why calls may be missing beside the line */
	bool has_row;
	bool has_symbol; /* the symbol has been looked up in the index of this run: */
	uint32_t symbol; /* its number, or FATHOM_NONE */
};

/* The addresses of a batch that are in one module. */
struct fathom_share {
	struct fathom_module *module;
	const uint64_t *addresses;
	const uint32_t *places; /* of the share in addresses; NULL: all of them */
	size_t n;
	uint64_t bias;                         /* address - bias is as stated in the ELF */
	const struct fathom_module_info *info; /* the module as answers have it; NULL: as none */
};

/* Addresses of a batch that no module has a name for. */
struct fathom_rest {
	const struct fathom_batch_options *options;
	const uint64_t *addresses;
	uint32_t *places; /* in addresses and answers; may be put into another order */
	size_t n;
	bool in_modules; /* in modules whose tables do not name them; else in no module */
	struct fathom_answers *answers; /* complete, but for the names */
};

/* Answers @share: each address gets the answer at its place. */
fathom_err fathom_symbolize_share(const struct fathom_share *share,
				  const struct fathom_batch_options *options,
				  struct fathom_answers *answers);

/* Notes the first failure of the batch. */
static inline void fathom_batch_fail(struct fathom_batch *b, fathom_err err)
{
	int32_t none = FATHOM_OK;

	(void)atomic_compare_exchange_strong(&b->err, &none, err);
}

/* Whether a unit knew every address. */
static inline bool fathom_batch_is_done(const struct fathom_batch *b)
{
	for (size_t i = 0; i < b->n; i++)
		if (!b->queries[i].done)
			return false;
	return true;
}

/* Completes the answer of @q from what was found about it, in the tables of @p. */
void fathom_batch_answer(struct fathom_batch *b, struct fathom_part *p,
			 const struct fathom_query *q, const struct fathom_found *f);

/* Whether symbols of several functions may start where that at @svma does. */
bool fathom_batch_is_folded(const struct fathom_batch *b, uint64_t svma);

/* Opens the debug information and makes the first jobs, which can be done before symbols are known.
 */
void fathom_batch_open_units(struct fathom_batch *b);

/* Answers what units know of the batch's queries; leaves the others. */
fathom_err fathom_batch_units(struct fathom_batch *b);

#endif
