/* SPDX-License-Identifier: MIT */
/*
 * Resolves overlapping claims to addresses: the last claim wins. A program that writes code makes a
 * claim for each function; a later claim takes from earlier ones the range that it covers.
 *
 * The claims are kept in a few levels of sorted, disjoint ranges; each level is newer than those
 * below it and at most half as large. So adding a claim costs O(log n) and a look-up two bisections
 * on average, in whatever order claims come.
 */
#ifndef FATHOM_JIT_CODE_TABLE_H
#define FATHOM_JIT_CODE_TABLE_H

#include "host/base/claims.h"
#include "host/base/memory.h"

/* Each level is more than twice as large as the next. */
#define FATHOM_CODE_LEVELS 64

struct fathom_code_table {
	struct fathom_memory *memory;
	struct {
		struct fathom_claim *claims;
		size_t n;
	} level[FATHOM_CODE_LEVELS];
	unsigned n_levels;
};

/*
 * Adds @n claims, unsorted, with distinct orders, all newer than those in @t. Skips empty ones.
 * FATHOM_E_MEMORY; FATHOM_E_LIMIT over the memory budget.
 */
fathom_err fathom_code_table_add(struct fathom_code_table *t, const struct fathom_claim *claims,
				 size_t n);

/* Returns the rest of the claim that holds at @avma; NULL if there is none. */
const struct fathom_claim *fathom_code_table_at(const struct fathom_code_table *t, uint64_t avma);

/* Forgets all claims. */
void fathom_code_table_clear(struct fathom_code_table *t);

#endif
