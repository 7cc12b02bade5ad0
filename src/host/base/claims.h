/* SPDX-License-Identifier: MIT */
/*
 * Claims to address ranges that may overlap. At each address the claim with the greatest order
 * holds. Flattening them yields sorted stretches that do not overlap.
 */
#ifndef FATHOM_BASE_CLAIMS_H
#define FATHOM_BASE_CLAIMS_H

#include <stddef.h>
#include <stdint.h>

#include "host/base/array.h"
#include "safe/base/error.h"

/* A claim, or a stretch in which it holds. */
struct fathom_claim {
	uint64_t start;
	uint64_t end;
	uint64_t order; /* identifies the claim; the greater order holds */
};

struct fathom_claim_array {
	FATHOM_ARRAY_OF(struct fathom_claim);
};

/*
 * Flattens the @n @claims, in any order. *@ret gets at most 2 n stretches, sorted, each with the
 * order of its claim; the caller frees it. The only error is FATHOM_E_MEMORY.
 */
fathom_err fathom_claims_flatten(const struct fathom_claim *claims, size_t n,
				 struct fathom_claim **ret, size_t *ret_n);

#endif
