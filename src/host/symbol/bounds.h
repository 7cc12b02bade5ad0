/* SPDX-License-Identifier: MIT */
/*
 * Bounds of functions from other sources than symbols. The module has them, in its unwind tables;
 * the symbols, which know no module, ask through this.
 */
#ifndef FATHOM_SYMBOL_BOUNDS_H
#define FATHOM_SYMBOL_BOUNDS_H

#include "host/file/object.h"
#include "safe/base/sort.h"

/* Ranges of code, sorted by their starts. */
struct fathom_bounds_list {
	struct fathom_keyed *ranges; /* key: first address; value: the one after the last */
	size_t n;
};

/* Returns how many ranges start at or before @svma. */
size_t fathom_bounds_list_upto(const struct fathom_bounds_list *l, uint64_t svma);

/*
 * Returns the index of the range that covers @svma, or the number of ranges if none does. Of ranges
 * that overlap, only the one that starts last is looked at.
 */
size_t fathom_bounds_list_at(const struct fathom_bounds_list *l, uint64_t svma);

/*
 * Returns where code that begins at @svma must end: at the end of the range that covers @svma, else
 * at the start of the next range; UINT64_MAX if there is neither.
 */
uint64_t fathom_bounds_list_end(const struct fathom_bounds_list *l, uint64_t svma);

struct fathom_bounds {
	/* Finds the range that covers @svma, as cheaply as one address allows. */
	bool (*at)(struct fathom_bounds *b, uint64_t svma, struct fathom_range *ret);
	/* Returns all ranges, made on first use; NULL if out of memory. For many addresses. */
	const struct fathom_bounds_list *(*all)(struct fathom_bounds *b);
};

#endif
