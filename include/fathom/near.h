/* SPDX-License-Identifier: MIT */
/**
 * @file
 * "Did you mean": the name that a mistyped one was likely meant to be.
 *
 * Names are near if few typing errors (edits) turn one into the other: a byte inserted, deleted or
 * replaced, or two neighbours swapped. Names of 3 to 5 bytes allow one edit, longer names two,
 * shorter names none.
 */
#ifndef FATHOM_NEAR_H
#define FATHOM_NEAR_H

#include <fathom/error.h>
#include <fathom/target.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Chooses the name nearest to @wanted among the @n @names; the first of equally near names. A name
 * that begins with @wanted, if that has 2 bytes or more, counts as one edit away.
 *
 * Safety: mt-safe
 * Memory: none; the name returned is one of @names
 * Returns: the name, or NULL when none is near
 */
FATHOM_API const char *fathom_near_text(const char *wanted, const char *const *names, size_t n);

/** Bytes that hold any name of fathom_near_symbol(), with its NUL. */
#define FATHOM_NEAR_SIZE 256

/**
 * Finds the symbol of @target nearest to @name, for a message to a person who mistyped a name.
 * Compares linkage names, without version, and demangled names, without parameters if @name has
 * none. Among equally near names, prefers exported over local, linkage names over demangled ones,
 * then the first in byte order. Looks at most at 4,194,304 symbols and demangles at most 100,000.
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
