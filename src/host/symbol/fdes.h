/* SPDX-License-Identifier: MIT */
/*
 * The code of all unwind descriptions by address: where .eh_frame_hdr has no table of them, asking
 * for one address is a walk over all, and asking for many must not be so many walks.
 */
#ifndef FATHOM_SYMBOL_FDES_H
#define FATHOM_SYMBOL_FDES_H

#include "host/base/memory.h"
#include "safe/base/sort.h"
#include "safe/dwarf/cfi.h"

struct fathom_fdes {
	struct fathom_memory *memory;
	struct fathom_keyed *ranges; /* key: first address; value: the one behind the last */
	size_t n;
};

/* NULL without memory. What is damaged ends it. */
struct fathom_fdes *fathom_fdes_create(struct fathom_memory *m, const struct fathom_cfi *cfi);
void fathom_fdes_destroy(struct fathom_fdes *f);

/* The range of the description that covers @svma, or NULL. Where some overlap, the one that starts
 * last is looked at. */
const struct fathom_keyed *fathom_fdes_at(const struct fathom_fdes *f, uint64_t svma);

#endif
