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
#include <fathom/target.h>

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

/** Room that every name of fathom_near_symbol() fits in, with its NUL. */
#define FATHOM_NEAR_SIZE 256

/**
 * Looks for the symbol of @target that is nearest to @name: compared are names as linked, without
 * version, and demangled ones, without parameters where @name has none. Of several that are as
 * near, exported ones come before local ones, names as linked before demangled ones, and then the
 * first in byte order. For a message to a person who has mistyped a name: at most 4,194,304 symbols
 * are looked at, and 100,000 demangled.
 *
 * Safety: mt-safe
 * Memory: writes the name, demangled if it is mangled, with a NUL to @buf, of FATHOM_NEAR_SIZE
 *	bytes
 * Returns: FATHOM_OK; FATHOM_E_NOT_FOUND when none is near; else as fathom_target_find_symbols()
 */
FATHOM_API fathom_err fathom_near_symbol(struct fathom_target *target, const char *name, char *buf,
					 struct fathom_errinfo *reterr);

#ifdef __cplusplus
}
#endif

#endif
