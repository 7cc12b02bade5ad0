/* SPDX-License-Identifier: MIT */
/* The functions that IFUNCs resolved to. */
#ifndef FATHOM_RUNTIME_IFUNC_H
#define FATHOM_RUNTIME_IFUNC_H

#include "host/runtime/runtime.h"

/* An IFUNC: a symbol whose value is the address of its resolver. */
struct fathom_ifunc {
	uint32_t module; /* number in the runtime */
	uint32_t number; /* in .dynsym; FATHOM_NONE: another table */
	uint64_t svma;   /* of the resolver */
	struct fathom_str name;
	struct fathom_str version; /* data NULL: none */
};

/*
 * Finds the avma of the function that @i resolved to. FATHOM_E_NOT_FOUND: unknown; FATHOM_E_MEMORY,
 * also if the slots do not fit the budget.
 */
fathom_err fathom_ifunc_resolved(struct fathom_runtime *r, const struct fathom_ifunc *i,
				 uint64_t *ret);

#endif
