/* SPDX-License-Identifier: MIT */
/*
 * Which of many claims to addresses holds where: the last one that was made, as a program that
 * writes code says where it has written it. A later claim takes away what it covers of earlier
 * ones.
 *
 * The claims are kept as a few levels of sorted stretches that do not overlap, each level newer
 * than those below it and at most half as large. So a claim costs O(log n) when it is added and a
 * look-up two binary searches in the mean, however the claims come.
 */
#ifndef FATHOM_JIT_CODE_TABLE_H
#define FATHOM_JIT_CODE_TABLE_H

#include "host/base/claims.h"
#include "host/base/memory.h"

/* Each level is more than twice the next. */
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
 * Adds @n claims, in any order and with different orders, all newer than those that are there.
 * Those that are empty are left out. FATHOM_E_MEMORY; FATHOM_E_LIMIT over the memory budget.
 */
fathom_err fathom_code_table_add(struct fathom_code_table *t, const struct fathom_claim *claims,
				 size_t n);

/* What is left of the claim that holds at @avma; NULL when there is none. */
const struct fathom_claim *fathom_code_table_at(const struct fathom_code_table *t, uint64_t avma);

/* Forgets all claims. */
void fathom_code_table_clear(struct fathom_code_table *t);

#endif
