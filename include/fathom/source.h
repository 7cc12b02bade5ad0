/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Source text: the lines around an answer, from the first place that has the file that was
 * compiled.
 */
#ifndef FATHOM_SOURCE_H
#define FATHOM_SOURCE_H

#include <fathom/answer.h>
#include <fathom/error.h>
#include <fathom/session.h>
#include <fathom/target.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Where a source text was found. Enumerators are never removed or renumbered. */
enum fathom_text_origin {
	FATHOM_TEXT_NONE = 0,
	FATHOM_TEXT_EMBEDDED = 1,  /**< in the debug information (clang -gembed-source) */
	FATHOM_TEXT_DIRECTORY = 2, /**< below one of fathom_source_options.dirs */
	FATHOM_TEXT_FILE = 3,      /**< at the path that the compiler wrote */
	FATHOM_TEXT_DEBUGINFOD = 4 /**< from a debuginfod server */
};

/**
 * Returns the word for an origin, such as "embedded"; "" for FATHOM_TEXT_NONE and unknown values.
 *
 * Safety: mt-safe
 * Memory: the text is static
 * Returns: never NULL
 */
FATHOM_API const char *fathom_text_origin_name(enum fathom_text_origin origin);

/** Source files that were read, kept for the next question. Opaque. */
struct fathom_source_files;

/** Options; as struct fathom_options. */
struct fathom_source_options {
	size_t size;
	uint32_t flags; /**< none so far */
	uint32_t reserved1;
	/** Directories to search, NULL-terminated; NULL: none. Copied. */
	const char *const *dirs;
	uint64_t reserved[4];
};

/** The text of a source file. The library may add members at the end. */
struct fathom_source_text {
	const char *path; /**< the file that was read; NULL for an embedded text */
	const char *text; /**< any bytes; no NUL ends it */
	size_t size;      /**< bytes of text */
	uint8_t origin;   /**< enum fathom_text_origin */
	/** 1: it is what was compiled: embedded, or its MD5 is that of the debug information */
	uint8_t is_proven;
	uint8_t is_newer; /**< 1: not proven, and changed after the module was made */
	uint8_t reserved[5];
};

/**
 * Creates an empty set of source files. @options may be NULL.
 *
 * Safety: mt-safe
 * Memory: *@ret_files is the caller's, to be freed with fathom_source_files_free(); holds @session
 * Returns: FATHOM_OK; FATHOM_E_ARGUMENT for options that this version does not know;
 *	FATHOM_E_MEMORY
 */
FATHOM_API fathom_err fathom_source_files_create(struct fathom *session,
						 const struct fathom_source_options *options,
						 struct fathom_source_files **ret_files,
						 struct fathom_errinfo *reterr);

/**
 * Safety: neither
 * Memory: frees @files, which may be NULL, and its texts
 * Returns: nothing
 */
FATHOM_API void fathom_source_files_free(struct fathom_source_files *files);

/**
 * Finds the text of @path, the file of one of the frames that @target gave for @pc. Tries in turn
 * the text that the debug information embeds; each directory of the options, followed by @path
 * without its first directories: as few of them as possible; @path itself, if it is absolute; with
 * FATHOM_DEBUGINFOD, the servers. Takes the first file that can be read and does not contradict the
 * MD5 in the debug information, if that has one (DWARF 5). If @target is NULL, there is no debug
 * information to ask.
 *
 * Only regular files of at most 64 MiB without a NUL are read, each once. What was found, or that
 * nothing was, is kept: some 64 MiB of texts, and no more than the session's budget allows.
 *
 * Safety: mt-safe for different @files
 * Memory: *@ret_text and its texts belong to @files and live until its next call
 * Returns: FATHOM_OK; else the reason that says most about the places tried: FATHOM_E_MISMATCH for
 *	a file whose MD5 differs, FATHOM_E_OS (no such file, no permission), FATHOM_E_FORMAT (no
 *	regular file, or no text), FATHOM_E_LIMIT (too large), FATHOM_E_NOT_FOUND, FATHOM_E_TIMEOUT;
 *	FATHOM_E_MEMORY; FATHOM_E_CANCELLED; for a process also what
 *	fathom_target_open_process() returns: it may have ended
 */
FATHOM_API fathom_err fathom_source_files_find(struct fathom_source_files *files,
					       struct fathom_target *target, struct fathom_pc pc,
					       const char *path,
					       const struct fathom_source_text **ret_text,
					       struct fathom_errinfo *reterr);

/**
 * Reads the file at @path, of any content, which no debug information proves.
 *
 * Safety: mt-safe for different @files
 * Memory: as fathom_source_files_find()
 * Returns: as fathom_source_files_find()
 */
FATHOM_API fathom_err fathom_source_files_read(struct fathom_source_files *files, const char *path,
					       const struct fathom_source_text **ret_text,
					       struct fathom_errinfo *reterr);

/** A walk over some lines of a text. */
struct fathom_source_lines {
	const char *line; /**< the current line, without its end ("\n" or "\r\n") */
	size_t size;      /**< bytes of line */
	uint64_t number;  /**< its number, counted from 1; 0 before the first step */
	uint64_t first;   /**< number of the first line to show */
	uint64_t last;    /**< number of the last line to show; the text may end before it */
	const char *next; /**< the text that is left */
	const char *end;
};

/**
 * Begins a walk over @n lines of @text, with line number @line in their middle: n / 2 lines are
 * before it, or all that there are.
 *
 * Safety: mt-safe
 * Memory: writes *@ret_lines, which borrows @text
 * Returns: nothing
 */
FATHOM_API void fathom_source_lines_begin(const char *text, size_t size, uint64_t line, uint64_t n,
					  struct fathom_source_lines *ret_lines);

/**
 * Steps to the next line of the walk.
 *
 * Safety: mt-safe
 * Memory: none
 * Returns: 1; 0 at the end of the walk or of the text
 */
FATHOM_API int fathom_source_lines_next(struct fathom_source_lines *lines);

#ifdef __cplusplus
}
#endif

#endif
