/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Stores of indexes: what was decoded of a build once, for all machines, found by its build-id.
 */
#ifndef FATHOM_STORE_H
#define FATHOM_STORE_H

#include <fathom/error.h>
#include <fathom/resolve.h>
#include <fathom/session.h>
#include <fathom/target.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A store. Opaque. */
struct fathom_store;

/** Options of a store; as struct fathom_options. */
struct fathom_store_options {
	size_t size;
	uint32_t flags;      /**< 0 */
	uint32_t timeout_ms; /**< for what one call asks of the store; default 30,000 */
	uint64_t reserved[4];
};

/** Bits of fathom_store_entry.level: how complete an index is. The higher number is more so. */
enum fathom_store_level {
	FATHOM_STORE_HAS_FILE = 1u << 0,   /**< made of the file, not of its debug file alone */
	FATHOM_STORE_HAS_SYMTAB = 1u << 1, /**< has symbols that nobody needs to load the file */
	FATHOM_STORE_HAS_LINES = 1u << 2   /**< has lines and inlined calls */
};

/** An index in a store. Later versions may add members at its end. */
struct fathom_store_entry {
	uint8_t build_id[FATHOM_BUILD_ID_MAX];
	uint32_t build_id_size;
	uint32_t level;           /**< enum fathom_store_level */
	uint64_t file_size;       /**< bytes in the store */
	uint64_t index_size;      /**< bytes of the index, not compressed */
	uint64_t debug_size;      /**< bytes of the file that the debug information was in */
	uint64_t debug_check;     /**< a checksum of these */
	uint64_t debug_info_size; /**< bytes of its debug sections, decompressed */
	uint8_t is_stored;        /**< 1: this call has stored it; 0: there was one as complete */
	uint8_t reserved[7];
};

/**
 * Opens the store at @place: a directory; "http://..." or "https://...", a server that knows GET,
 * HEAD and PUT, asked by libcurl; or '!' and a command. What is there is not looked at yet.
 * @options may be NULL.
 *
 * An index from a store is checked, and of what it says nothing but names and places is believed;
 * but its names cannot be proved: whoever may write to the store is trusted.
 *
 * Safety: mt-safe
 * Memory: *@ret_store is the caller's, to be closed with fathom_store_close(); it keeps @session
 *	until then
 * Returns: FATHOM_OK; FATHOM_E_ARGUMENT for options that this version does not know, and for an
 *	empty @place; FATHOM_E_UNSUPPORTED: it needs a library that is not there; FATHOM_E_MEMORY
 */
FATHOM_API fathom_err fathom_store_open(struct fathom *session, const char *place,
					const struct fathom_store_options *options,
					struct fathom_store **ret_store,
					struct fathom_errinfo *reterr);

/**
 * Closes @store, which may be NULL.
 *
 * Safety: mt-safe per object
 * Memory: frees @store
 * Returns: nothing
 */
FATHOM_API void fathom_store_close(struct fathom_store *store);

/**
 * Makes the index of @target, a file that was just opened, and stores it, unless the store has one
 * that is as complete. Of two, the more complete is kept; the same file makes the same bytes. The
 * target knows no index afterwards.
 *
 * Safety: neither
 * Memory: writes *@ret_entry
 * Returns: FATHOM_OK; FATHOM_E_UNSUPPORTED: it is no file, has no build-id, or cannot be decoded
 *	whole; FATHOM_E_OS, FATHOM_E_TIMEOUT: it cannot be stored; FATHOM_E_CANCELLED;
 *	FATHOM_E_MEMORY
 */
FATHOM_API fathom_err fathom_store_build(struct fathom_store *store, struct fathom_target *target,
					 struct fathom_store_entry *ret_entry,
					 struct fathom_errinfo *reterr);

/**
 * Stores the index in the file at @path, which fathom_store_get() has written, as
 * fathom_store_build() does. All of it is checked first.
 *
 * Safety: mt-safe per object
 * Memory: writes *@ret_entry
 * Returns: FATHOM_OK; FATHOM_E_CORRUPT: it is none; as fathom_store_build()
 */
FATHOM_API fathom_err fathom_store_put(struct fathom_store *store, const char *path,
				       struct fathom_store_entry *ret_entry,
				       struct fathom_errinfo *reterr);

/**
 * Writes the index of @build_id to the file at @path, which is replaced, or only checks all of it
 * if @path is NULL.
 *
 * Safety: mt-safe per object
 * Memory: writes *@ret_entry
 * Returns: FATHOM_OK; FATHOM_E_NOT_FOUND: the store has none; FATHOM_E_CORRUPT: it is damaged, or
 *	of another build or version; FATHOM_E_OS; FATHOM_E_TIMEOUT; FATHOM_E_ARGUMENT: that is no
 *	build-id; FATHOM_E_CANCELLED; FATHOM_E_MEMORY
 */
FATHOM_API fathom_err fathom_store_get(struct fathom_store *store, const uint8_t *build_id,
				       size_t build_id_size, const char *path,
				       struct fathom_store_entry *ret_entry,
				       struct fathom_errinfo *reterr);

/** Takes a build-id, which is valid in the call only. A value other than 0 ends the calls. */
typedef int (*fathom_build_id_fn)(void *data, const uint8_t *build_id, size_t build_id_size);

/**
 * Calls @fn with each build-id that the store has an index of, as its names say, until it returns a
 * value other than 0. Only directories can tell.
 *
 * Safety: mt-safe per object
 * Memory: the build-ids are valid in @fn only
 * Returns: FATHOM_OK; FATHOM_E_UNSUPPORTED: the store cannot tell; FATHOM_E_OS
 */
FATHOM_API fathom_err fathom_store_each(struct fathom_store *store, fathom_build_id_fn fn,
					void *data, struct fathom_errinfo *reterr);

#ifdef __cplusplus
}
#endif

#endif
