/* SPDX-License-Identifier: MIT */
/* Ranges of addresses of a core: what core.c and core_link.c share. */
#ifndef FATHOM_USER_CORE_RANGE_H
#define FATHOM_USER_CORE_RANGE_H

#include "safe/base/bytes.h"

/* A PT_LOAD, or a range mapped from a file. */
struct fathom_core_range {
	uint64_t start; /* avma */
	uint64_t end;
	uint64_t off;           /* in the core, or in the mapped file */
	uint64_t filesz;        /* of a PT_LOAD: stored bytes */
	uint64_t number;        /* of a file without a path; otherwise 0 */
	struct fathom_str name; /* of the file; data is NULL if damaged */
	uint32_t flags;         /* PF_, of a PT_LOAD */
};

struct fathom_core_ranges {
	struct fathom_core_range *items; /* sorted, disjoint */
	size_t n;
};

#endif
