/* SPDX-License-Identifier: MIT */
/**
 * @file
 * A session: the options, the memory budget and the caches that targets share.
 */
#ifndef FATHOM_SESSION_H
#define FATHOM_SESSION_H

#include <fathom/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A session. Opaque. */
struct fathom;

struct fathom_compat_options;

/** Bits of fathom_options.flags. */
enum fathom_flag {
	/** Neither read nor write the index cache on disk. */
	FATHOM_NO_CACHE = 1u << 0,
	/** Ask the debuginfod servers of $DEBUGINFOD_URLS for debug files that are not here. */
	FATHOM_DEBUGINFOD = 1u << 1
};

/** What a call is at. The list only grows. */
enum fathom_phase {
	FATHOM_PHASE_OPEN = 0,     /**< reading or decompressing a file; done in bytes */
	FATHOM_PHASE_DOWNLOAD = 1, /**< waiting for a debuginfod server */
	FATHOM_PHASE_ANSWER = 2,   /**< answering addresses; done in parts of the batch */
	FATHOM_PHASE_FIND = 3,     /**< searching; done in parts of tables, or of units */
	FATHOM_PHASE_DISASM = 4,   /**< decoding instructions; done in bytes */
	FATHOM_PHASE_SNAPSHOT = 5, /**< writing a snapshot; done in mappings */
	FATHOM_PHASE_PREPARE = 6,  /**< fathom_self_prepare(); done in modules */
	FATHOM_PHASE_STORE = 7     /**< storing an index; done in units */
};

/** What the progress of a session's options is told. Later versions may add members at its end. */
struct fathom_progress {
	uint64_t done;
	uint64_t total; /**< of what done counts; 0: not known */
	uint32_t phase; /**< enum fathom_phase */
	uint32_t reserved;
};

/** What it returns; any other number is FATHOM_CANCEL. */
enum fathom_decision {
	FATHOM_GO_ON = 0,
	FATHOM_CANCEL = 1,
	FATHOM_SKIP = 2 /**< in FATHOM_PHASE_DOWNLOAD: do without what is waited for */
};

/**
 * Options of a session. Zero-fill it, set size to sizeof(struct fathom_options), then what is
 * wanted: 0 or NULL in any field means the default. Fields that this header does not know must be
 * zero, else FATHOM_E_ARGUMENT.
 */
struct fathom_options {
	size_t size;
	uint32_t flags;
	/** Threads of one batch, the caller's included; default: one for each processor. */
	uint32_t threads;
	/**
	 * Bytes the session may keep: decompressed sections, indexes, decoded functions. Default
	 * 1 GiB. Decoded functions are dropped to stay inside; a section that does not fit is not
	 * decompressed, which its answers say (FATHOM_REASON_LIMIT), nor is a file
	 * (FATHOM_E_LIMIT). What fathom_find() finds has to fit, too (FATHOM_E_LIMIT), and is the
	 * caller's then.
	 */
	uint64_t memory_budget;
	/** Directory of the index cache; default: $XDG_CACHE_HOME/fathom, else ~/.cache/fathom. */
	const char *cache_dir;
	/** Bytes that the files in cache_dir may take together; default 2 GiB. */
	uint64_t cache_limit;
	/** Milliseconds that all questions to debuginfod may take together; default 10,000. */
	uint32_t debuginfod_timeout_ms;
	/**
	 * Milliseconds that waits for file systems that do not answer (FUSE, NFS, SMB and others,
	 * whose server is gone) may take together in any minute. What is on them is left out, with
	 * a note (FATHOM_REASON_TIMEOUT), or cannot be opened (FATHOM_E_TIMEOUT). Only where there
	 * are such file systems: a process without descriptors, a child of nobody, is forked to
	 * touch their files first, and is left behind where it gets stuck. Default 0: files are
	 * opened as they are, and a thread that waits for a server that is gone waits for ever.
	 */
	uint32_t file_timeout_ms;
	/**
	 * Called now and then by calls that take long, on the thread that made the call, without a
	 * lock held: returns FATHOM_GO_ON, or FATHOM_CANCEL, and the call returns
	 * FATHOM_E_CANCELLED soon. The session and what was open before stay usable. NULL: never.
	 */
	int (*progress)(void *data, const struct fathom_progress *p);
	void *progress_data;
	/** <fathom/compat.h>; NULL: none. */
	const struct fathom_compat_options *compat;
	uint64_t reserved[3];
};

/**
 * Starts a session with @options, which may be NULL and are copied.
 *
 * Safety: mt-safe
 * Memory: *@ret_session is the caller's, to be ended with fathom_destroy()
 * Returns: FATHOM_OK, FATHOM_E_ARGUMENT or FATHOM_E_MEMORY; *@ret_session is set on success only
 */
FATHOM_API fathom_err fathom_create(const struct fathom_options *options,
				    struct fathom **ret_session, struct fathom_errinfo *reterr);

/**
 * Gives @session up; it may be NULL. It lives on until its last target and struct fathom_self are
 * gone, which may be released before or after this call.
 *
 * Safety: neither
 * Memory: frees @session with what was opened in it last
 * Returns: nothing
 */
FATHOM_API void fathom_destroy(struct fathom *session);

/**
 * For a program's own handler of SIGBUS, with the address of siginfo_t.si_addr.
 *
 * Files are mapped, and reading a page of one that was truncated, or whose disk fails, raises
 * SIGBUS in the thread that reads: in any call that is given a session, a target or a struct
 * fathom_self, except those whose Safety is as-safe, and in the threads that such a call starts.
 * (The library installs no handler. Its threads block no signal that a fault raises, and all
 * others.) If the address lies in
 * a file that @session has mapped, the rest of the mapping is replaced by zeros and the handler may
 * return: the call goes on, and returns FATHOM_E_CHANGED with the file's name; of a process, core
 *or kernel, the addresses in that file are answered with FATHOM_REASON_CHANGED. Calls on what a
 *call has returned (answers, matches, disassemblies, values) read no file and raise nothing.
 *
 * What fathom_target_get_info(), fathom_target_section() and fathom_target_symbol() point to lies
 * in mapped files. So does, in handlers, what fathom_self_prepare() took from the index cache; its
 * files are replaced, never written to, by the library.
 *
 * Safety: as-safe; mt-safe
 * Memory: maps zeros over a file of @session
 * Returns: 1 if the fault is dealt with and the handler may return; 0 if it is not of a file of
 *	@session: the program deals with it as if there were no session
 */
FATHOM_API int fathom_handle_sigbus(struct fathom *session, const void *address);

/** What a session holds at the moment. */
struct fathom_usage {
	uint64_t memory_used;   /**< bytes counted against the budget */
	uint64_t memory_budget; /**< bytes allowed */
};

/**
 * Safety: mt-safe
 * Memory: writes *@ret_usage
 * Returns: nothing
 */
FATHOM_API void fathom_get_usage(const struct fathom *session, struct fathom_usage *ret_usage);

#ifdef __cplusplus
}
#endif

#endif
