/* SPDX-License-Identifier: MIT */
/**
 * @file
 * "Did you mean": the name that somebody who mistyped one is likely to have meant.
 *
 * Names are near when few slips of the hand lead from one to the other: a byte too many, a byte
 * missing, a wrong byte, or two neighbours swapped. One slip is allowed in names of 3 to 5 bytes,
 * two in longer ones, none in shorter ones.
 */
#ifndef FATHOM_NEAR_H
#define FATHOM_NEAR_H

#include <fathom/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Chooses among @names, of which there are @n, the nearest to @wanted; of several that are as near,
 * the first. A name that begins with @wanted, of 2 bytes or more, counts as one slip away.
 *
 * Safety: mt-safe
 * Memory: none; the name returned is one of @names
 * Returns: the name, or NULL when none is near
 */
FATHOM_API const char *fathom_near_text(const char *wanted, const char *const *names, size_t n);

#ifdef __cplusplus
}
#endif

#endif
