/* SPDX-License-Identifier: MIT */
/**
 * @file
 * The index cache on disk: what one run decoded, the next finds ready.
 */
#ifndef FATHOM_CACHE_H
#define FATHOM_CACHE_H

#include <fathom/error.h>
#include <fathom/target.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What fathom_cache_store() did. */
struct fathom_cache_result {
	uint64_t file_size; /**< bytes written; 0: nothing had to be stored */
	uint64_t functions; /**< ranges of code that the stored index holds */
	uint8_t complete; /**< 1: it holds all of the target: its debug information is not needed */
	uint8_t reserved[7];
};

/**
 * Stores in the session's cache directory what was decoded of @target, together with what an
 * earlier run had stored. With @all, decodes all of it first.
 *
 * The file is replaced atomically and belongs to this user. When the directory grows beyond the
 * session's limit, the files that were used longest ago are removed.
 *
 * Safety: mt-safe
 * Memory: writes *@ret_result, which may be NULL
 * Returns: FATHOM_OK; FATHOM_E_OS with the directory named; FATHOM_E_MEMORY; FATHOM_E_UNSUPPORTED
 *	when the session has no cache; FATHOM_E_TIMEOUT when @deadline_ms (0: none) passed, with
 *	nothing written
 */
FATHOM_API fathom_err fathom_cache_store(struct fathom_target *target, int all,
					 uint32_t deadline_ms,
					 struct fathom_cache_result *ret_result,
					 struct fathom_errinfo *reterr);

/**
 * Safety: mt-safe
 * Memory: none
 * Returns: milliseconds that were spent so far decompressing and decoding @target: what a stored
 *	index would save the next run
 */
FATHOM_API uint64_t fathom_cache_cost_ms(const struct fathom_target *target);

/**
 * Removes every index from the session's cache directory.
 *
 * Safety: mt-safe
 * Memory: writes the number of files removed to *@ret_removed, which may be NULL
 * Returns: FATHOM_OK; FATHOM_E_OS with the directory named when some could not be removed
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
