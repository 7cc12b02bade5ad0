/* SPDX-License-Identifier: MIT */
/* The edit distance between two names, counted in slips of the hand; see fathom/near.h. */
#ifndef FATHOM_BASE_NEAR_H
#define FATHOM_BASE_NEAR_H

#include "fathom/near.h"
#include "safe/base/bytes.h"

/* Longer names are near to none. */
#define FATHOM_NEAR_LONGEST (FATHOM_NEAR_SIZE - 1)

/* Returns the most slips that keep a name near to one of @size bytes. */
unsigned fathom_near_slips(uint32_t size);

/* Returns the number of slips from @a to @b, or @most + 1 if there are more than @most. */
unsigned fathom_near_distance(struct fathom_str a, struct fathom_str b, unsigned most);

#endif
