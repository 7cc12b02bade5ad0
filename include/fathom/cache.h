/* SPDX-License-Identifier: MIT */
/**
 * @file
 * The index cache on disk: a run stores what it decoded, and later runs load it.
 */
#ifndef FATHOM_CACHE_H
#define FATHOM_CACHE_H

#include <fathom/error.h>
#include <fathom/target.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Result of fathom_cache_store(). */
struct fathom_cache_result {
	uint64_t file_size; /**< bytes written; 0: there was nothing new to store */
	uint64_t functions; /**< ranges of code that the stored index holds */
	uint8_t complete; /**< 1: it covers the whole target, so the debug information is no longer
			     needed */
	uint8_t reserved[7];
};

/**
 * Stores everything decoded from @target so far, and everything that earlier runs stored, in the
 * session's cache directory. With @all, first decodes the whole target.
 *
 * The file is replaced atomically and belongs to this user. When the directory exceeds the
 * session's limit, the least recently used files are removed.
 *
 * Safety: mt-safe
 * Memory: writes *@ret_result, which may be NULL
 * Returns: FATHOM_OK; FATHOM_E_OS, naming the directory; FATHOM_E_MEMORY; FATHOM_E_UNSUPPORTED when
 *	the session has no cache; FATHOM_E_TIMEOUT when @deadline_ms (0: none) passed, with nothing
 *	written
 */
FATHOM_API fathom_err fathom_cache_store(struct fathom_target *target, int all,
					 uint32_t deadline_ms,
					 struct fathom_cache_result *ret_result,
					 struct fathom_errinfo *reterr);

/**
 * Safety: mt-safe
 * Memory: none
 * Returns: milliseconds spent so far on decompressing and decoding @target, which a stored index
 *	would save the next run
 */
FATHOM_API uint64_t fathom_cache_cost_ms(const struct fathom_target *target);

/**
 * Removes every index from the session's cache directory.
 *
 * Safety: mt-safe
 * Memory: writes the number of files removed to *@ret_removed, which may be NULL
 * Returns: FATHOM_OK; FATHOM_E_OS, naming the directory, when some could not be removed
 */
FATHOM_API fathom_err fathom_cache_clear(struct fathom *session, uint64_t *ret_removed,
					 struct fathom_errinfo *reterr);

/**
 * Safety: mt-safe
 * Memory: the text belongs to @session
 * Returns: the cache directory, or NULL when the session has none
 */
FATHOM_API const char *fathom_cache_dir(const struct fathom *session);

#ifdef __cplusplus
}
#endif

#endif
