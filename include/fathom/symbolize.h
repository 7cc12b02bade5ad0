/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Symbolization: from addresses to functions, files, lines and inlined calls.
 */
#ifndef FATHOM_SYMBOLIZE_H
#define FATHOM_SYMBOLIZE_H

#include <fathom/answer.h>
#include <fathom/error.h>
#include <fathom/target.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Bits of fathom_symbolize_options.flags. */
enum fathom_symbolize_flag {
	/** Names only: no files, lines or inlined calls; no debug information is read. */
	FATHOM_NAMES_ONLY = 1u << 0,
	/** No demangling: function names are linkage names. */
	FATHOM_NO_DEMANGLE = 1u << 1,
	/**
	 * Decode only what these addresses need, and drop it at once. For programs that ask once.
	 * Leaves nothing for fathom_cache_store().
	 */
	FATHOM_ONE_SHOT = 1u << 2
};

struct fathom_compat_symbolize;

/** Options of one batch; as struct fathom_options. */
struct fathom_symbolize_options {
	size_t size;
	uint32_t flags;
	uint32_t reserved1;
	const struct fathom_compat_symbolize *compat; /**< <fathom/compat.h>; NULL: none */
	uint64_t reserved[4];
};

/**
 * The answers to one batch, in its order. Identical frames are one object: equal pointers mean
 * equal frames, and different pointers different ones. Opaque; independent of the target once made.
 */
struct fathom_answers;

/**
 * Answers @n addresses, at most 2^31 - 1. @kinds holds the enum fathom_pc_kind of each; NULL: all
 * are exact. If one address cannot be answered, its answer has a reason; the call fails only if
 * nothing could be answered.
 *
 * The addresses are those of the ELF file; in a relocatable file, those of
 * fathom_target_section_address(); in a process, those of its memory.
 *
 * Safety: mt-safe; several threads may query one target concurrently, without waiting for each
 *	other
 * Memory: *@ret_answers is the caller's, to be freed with fathom_answers_free()
 * Returns: FATHOM_OK, FATHOM_E_ARGUMENT or FATHOM_E_MEMORY; for a process also what
 *	fathom_target_open_process() returns: it may have ended
 */
FATHOM_API fathom_err fathom_symbolize(struct fathom_target *target,
				       const struct fathom_symbolize_options *options,
				       const uint64_t *addresses, const uint8_t *kinds, size_t n,
				       struct fathom_answers **ret_answers,
				       struct fathom_errinfo *reterr);

/**
 * Answers one @pc, as fathom_symbolize() does. @options may be NULL.
 *
 * Safety: mt-safe
 * Memory: *@ret_answer is the caller's, to be freed with fathom_answer_free()
 * Returns: as fathom_symbolize()
 */
FATHOM_API fathom_err fathom_lookup(struct fathom_target *target, struct fathom_pc pc,
				    const struct fathom_symbolize_options *options,
				    const struct fathom_answer **ret_answer,
				    struct fathom_errinfo *reterr);

/**
 * Frees an answer of fathom_lookup().
 *
 * Safety: neither
 * Memory: frees @answer, which may be NULL, and all that was reached through it
 * Returns: nothing
 */
FATHOM_API void fathom_answer_free(const struct fathom_answer *answer);

/**
 * Safety: neither
 * Memory: frees @answers, which may be NULL, and all that was reached through it
 * Returns: nothing
 */
FATHOM_API void fathom_answers_free(struct fathom_answers *answers);

/**
 * Safety: mt-safe
 * Memory: none
 * Returns: the number of answers: as many as there were addresses
 */
FATHOM_API size_t fathom_answers_count(const struct fathom_answers *answers);

/**
 * Safety: mt-safe
 * Memory: the answer belongs to @answers
 * Returns: answer @i, which must be below the count
 */
FATHOM_API const struct fathom_answer *fathom_answers_get(const struct fathom_answers *answers,
							  size_t i);

/**
 * Returns all answers as an array: answer i starts i times *@ret_stride bytes after the first.
 *
 * Safety: mt-safe
 * Memory: the answers belong to @answers; writes *@ret_stride
 * Returns: the first answer; not to be read when the count is 0
 */
FATHOM_API const struct fathom_answer *fathom_answers_array(const struct fathom_answers *answers,
							    size_t *ret_stride);

/** Columns of answers that fathom_answers_encode() encodes. */
enum fathom_column {
	FATHOM_COLUMN_SYMBOL = 0,       /**< fathom_answer.symbol */
	FATHOM_COLUMN_LINKAGE_NAME = 1, /**< fathom_answer.linkage_name */
	FATHOM_COLUMN_MODULE = 2,       /**< fathom_answer.module: by its path and build-id */
	FATHOM_COLUMN_FUNCTION = 3,     /**< of the innermost frame; without frames the symbol */
	FATHOM_COLUMN_FILE = 4          /**< of the innermost frame */
};

/** The code of an answer that has no value in a column. */
#define FATHOM_NO_CODE UINT32_MAX

/**
 * Encodes a column of @answers by a dictionary, as columnar formats do: numbers its distinct values
 * from 0 in the order in which they come. Answer i has value @ret_codes[i], or FATHOM_NO_CODE
 * without one; the first answer with value k is number @ret_first[k]. Texts are equal if their
 * bytes are.
 *
 * Safety: mt-safe
 * Memory: writes as many numbers to @ret_codes as there are answers, at most as many to
 *	@ret_first, and how many values there are to *@ret_n; after a failure they hold anything
 * Returns: FATHOM_OK; FATHOM_E_ARGUMENT for a column that this version does not know;
 *	FATHOM_E_MEMORY
 */
FATHOM_API fathom_err fathom_answers_encode(const struct fathom_answers *answers,
					    enum fathom_column column, uint32_t *ret_codes,
					    uint32_t *ret_first, size_t *ret_n,
					    struct fathom_errinfo *reterr);

/**
 * Copies lines and columns of the innermost frames of all @answers; 0: none.
 *
 * Safety: mt-safe
 * Memory: writes as many numbers as there are answers to @ret_lines and to @ret_columns, each of
 *	which may be NULL
 * Returns: nothing
 */
FATHOM_API void fathom_answers_lines(const struct fathom_answers *answers, uint32_t *ret_lines,
				     uint32_t *ret_columns);

#ifdef __cplusplus
}
#endif

#endif
