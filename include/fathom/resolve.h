/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Rows of many machines: names for pairs of a build-id and an address, of any number of modules at
 * once, columns in and answers out.
 */
#ifndef FATHOM_RESOLVE_H
#define FATHOM_RESOLVE_H

#include <fathom/answer.h>
#include <fathom/error.h>
#include <fathom/session.h>
#include <fathom/target.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A resolver. Opaque. It keeps the modules that rows have named open. */
struct fathom_resolver;

/** Bits of fathom_resolver_options.flags. */
enum fathom_resolver_flag {
	/**
	 * Numbers of rows are offsets in the file, not addresses as the ELF file states them. They
	 * need the file itself: the headers of its debug file do not tell them.
	 */
	FATHOM_RESOLVER_FILE_OFFSETS = 1u << 0,
	/**
	 * The index of a build that no store has, but whose file is found, is made whole and put
	 * into the first store. That takes some seconds for each GB of debug information.
	 */
	FATHOM_RESOLVER_STORE_PUT = 1u << 1
};

/** Options of a resolver; as struct fathom_options. */
struct fathom_resolver_options {
	size_t size;
	uint32_t flags;           /**< enum fathom_resolver_flag */
	uint32_t symbolize_flags; /**< enum fathom_symbolize_flag, for all rows */
	/** Where debug files are, and the sysroot, which is prepended to paths of modules. */
	const struct fathom_target_options *where;
	/** Directories with files that rows name without a path, NULL-terminated; NULL: none */
	const char *const *module_dirs;
	/**
	 * Milliseconds after which a file that was not found is looked for again; default 60,000.
	 */
	uint32_t missing_ms;
	/**
	 * Milliseconds for all that one call asks of the stores; default 10,000. It bounds a call
	 * that fathom_options.progress cannot give up while a store does not answer.
	 */
	uint32_t store_timeout_ms;
	/** Stores of indexes, as fathom_store_open() takes them, NULL-terminated; NULL: none */
	const char *const *stores;
	uint64_t reserved[3];
};

/** Bytes of the longest build-id. */
#define FATHOM_BUILD_ID_MAX 64

/** A build: what rows are about. */
struct fathom_build {
	const uint8_t *build_id;
	/**
	 * Path or file name of the module, where its file may be. It need not end with a NUL. NULL:
	 * not known.
	 */
	const char *module;
	/**
	 * Bytes of build_id. 0: none is known; then the file at the path of module serves, whatever
	 * it is.
	 */
	uint32_t build_id_size;
	uint32_t module_size; /**< bytes of module */
};

/** Rows, as columns. */
struct fathom_rows {
	size_t size; /**< sizeof(struct fathom_rows) */
	size_t n;    /**< rows, at most 2^31 - 1 */
	const struct fathom_build *builds;
	size_t n_builds;
	const uint32_t *row_builds; /**< of each row, its index in builds */
	const uint64_t *numbers;    /**< of each row, its address or offset in the file */
	const uint8_t *kinds;       /**< of each row, its enum fathom_pc_kind; NULL: all exact */
	uint64_t reserved[4];
};

/** The answers to rows, in their order. Opaque; independent of the resolver once made. */
struct fathom_row_answers;

/** Counts of a resolver, from its creation on. Later versions may add members at its end. */
struct fathom_resolver_counts {
	uint64_t rows;       /**< that were asked */
	uint64_t equal_rows; /**< of those, answered by the answer of an equal row of their call */
	uint64_t opened;     /**< modules that were opened */
	uint64_t open;       /**< modules that are open now */
	uint64_t evicted;    /**< modules that were closed to make room */
	uint64_t hits;       /**< look-ups of builds whose file was open */
	uint64_t misses;     /**< look-ups of builds whose file was looked for */
	uint64_t known_missing; /**< look-ups of builds whose file was known to be missing */
	uint64_t missing;       /**< builds that are remembered as missing now */
	uint64_t open_ns;       /**< spent opening files and looking for them */
	uint64_t answer_ns;     /**< spent answering, decoding included */
	uint64_t store_ns;      /**< spent storing indexes */
	uint64_t decode_ns;     /**< of all threads, spent decoding what no index had */
	uint64_t from_stores;   /**< of opened, modules whose index came of a store */
	uint64_t put;           /**< indexes that were put into a store */
};

/**
 * Creates a resolver. @options may be NULL.
 *
 * Safety: mt-safe
 * Memory: *@ret_resolver is the caller's, to be destroyed with fathom_resolver_destroy(); it keeps
 *	@session until then
 * Returns: FATHOM_OK; FATHOM_E_ARGUMENT for options that this version does not know;
 *	FATHOM_E_MEMORY
 */
FATHOM_API fathom_err fathom_resolver_create(struct fathom *session,
					     const struct fathom_resolver_options *options,
					     struct fathom_resolver **ret_resolver,
					     struct fathom_errinfo *reterr);

/**
 * Destroys @resolver, which may be NULL. Stores the indexes of what it has decoded, if the session
 * has a cache.
 *
 * Safety: mt-safe per object
 * Memory: frees @resolver and closes its files; answers stay
 * Returns: nothing
 */
FATHOM_API void fathom_resolver_destroy(struct fathom_resolver *resolver);

/**
 * Answers @rows. Rows of one build become one batch, and equal rows one address.
 *
 * The stores are asked first, in their order: an index of the build stands for its file. The file
 * of a build is the one with its build-id: below the debug directories (".build-id/ab/cdef"); at
 * the path of the module, first below the sysroot; of the module's file name in a module
 * directory; the debug file alone, below the debug directories or, if the session has
 * FATHOM_DEBUGINFOD, of a server. fathom_options.debuginfod_timeout_ms then holds for each call. A
 * file with another build-id is never used. A build whose file is not found is remembered for
 * fathom_resolver_options.missing_ms; the memory for that is bounded.
 *
 * Files stay open for later calls while the session's budget lasts; the memory of files that are
 * mapped counts as well, as far as the process's grows by it. Then those that were not asked for
 * longest are closed. What was decoded of them is stored in the index cache first, so that it is
 * not decoded again.
 *
 * If fathom_options.progress gives the call up, the rows that are not answered yet have the reason
 * FATHOM_REASON_TIMEOUT.
 *
 * Safety: mt-safe per object
 * Memory: *@ret_answers is the caller's, to be freed with fathom_row_answers_free()
 * Returns: FATHOM_OK, also if no row has a name; FATHOM_E_ARGUMENT for more rows than that, and
 *	for rows of a build that is not there; FATHOM_E_MEMORY
 */
FATHOM_API fathom_err fathom_resolver_answer(struct fathom_resolver *resolver,
					     const struct fathom_rows *rows,
					     struct fathom_row_answers **ret_answers,
					     struct fathom_errinfo *reterr);

/**
 * Returns the answers as an array of as many pointers as there were rows. Equal rows of one build
 * have the same answer; rows without a file have one with nothing but a reason.
 *
 * Safety: mt-safe
 * Memory: the array and the answers belong to @answers
 * Returns: the array; no member is NULL
 */
FATHOM_API const struct fathom_answer *const *fathom_row_answers_array(
	const struct fathom_row_answers *answers);

/**
 * Frees @answers, which may be NULL.
 *
 * Safety: neither
 * Memory: frees @answers and all that was reached through it
 * Returns: nothing
 */
FATHOM_API void fathom_row_answers_free(struct fathom_row_answers *answers);

/**
 * Reads the counts of @resolver, at most @size bytes of them.
 *
 * Safety: mt-safe, also while another thread has rows answered
 * Memory: writes @size bytes to *@ret_counts; zeros for what this version does not count
 * Returns: nothing
 */
FATHOM_API void fathom_resolver_get_counts(const struct fathom_resolver *resolver,
					   struct fathom_resolver_counts *ret_counts, size_t size);

#ifdef __cplusplus
}
#endif

#endif
