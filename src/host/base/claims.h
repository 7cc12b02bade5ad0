/* SPDX-License-Identifier: MIT */
/*
 * Claims to address ranges that may overlap: at each address the claim with the greatest order
 * holds. Laying them over each other leaves sorted stretches that do not overlap.
 */
#ifndef FATHOM_BASE_CLAIMS_H
#define FATHOM_BASE_CLAIMS_H

#include <stddef.h>
#include <stdint.h>

#include "safe/base/error.h"

/* A claim, or what is left of one. */
struct fathom_claim {
	uint64_t start;
	uint64_t end;
	uint64_t order; /* identifies the claim; of two, the one with the greater order holds */
};

/*
 * Lays the @n @claims, in any order, over each other: *@ret has at most 2 n stretches, sorted, each
 * with the order of its claim. The caller frees it. FATHOM_E_MEMORY is the only error.
 */
fathom_err fathom_claims_flatten(const struct fathom_claim *claims, size_t n,
				 struct fathom_claim **ret, size_t *ret_n);

#endif
