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
	/**
	 * Ask the debuginfod servers of $DEBUGINFOD_URLS for missing debug files and sources; in a
	 * secure process (fathom_is_secure()) nobody.
	 */
	FATHOM_DEBUGINFOD = 1u << 1,
	/**
	 * Decompress each section at once although progress is set, which is not called meanwhile:
	 * for those who only show it.
	 */
	FATHOM_WHOLE_SECTIONS = 1u << 2
};

/** Phases of a call. Enumerators are never removed or renumbered. */
enum fathom_phase {
	FATHOM_PHASE_OPEN = 0,     /**< reading or decompressing a file; done in bytes */
	FATHOM_PHASE_DOWNLOAD = 1, /**< waiting for a debuginfod server */
	FATHOM_PHASE_ANSWER = 2,   /**< answering addresses; done in parts of the batch */
	FATHOM_PHASE_FIND = 3,     /**< searching; done in parts of tables, units or functions */
	FATHOM_PHASE_DISASM = 4,   /**< decoding instructions; done in bytes */
	FATHOM_PHASE_SNAPSHOT = 5, /**< writing a snapshot; done in mappings */
	FATHOM_PHASE_PREPARE = 6,  /**< fathom_self_prepare(); done in modules */
	FATHOM_PHASE_STORE = 7,    /**< storing an index; done in units */
	FATHOM_PHASE_INDEX = 8,    /**< indexing the symbols of a file; done in parts of tables */
	FATHOM_PHASE_READ = 9      /**< reading values or /proc/kallsyms; in values, or bytes */
};

/** The argument of fathom_options.progress. Later versions may add members at its end. */
struct fathom_progress {
	uint64_t done;
	uint64_t total; /**< in the unit of done; 0: not known */
	uint32_t phase; /**< enum fathom_phase */
	uint32_t reserved;
};

/** The results of fathom_options.progress; any other number means FATHOM_CANCEL. */
enum fathom_decision {
	FATHOM_GO_ON = 0,
	FATHOM_CANCEL = 1,
	FATHOM_SKIP = 2 /**< in FATHOM_PHASE_DOWNLOAD: do without this file */
};

/**
 * Options of a session. Zero-fill the struct, set size to sizeof(struct fathom_options), then set
 * the fields that you want: 0 or NULL in any field means the default. Fields that this header does
 * not know must be zero, else FATHOM_E_ARGUMENT.
 */
struct fathom_options {
	size_t size;
	uint32_t flags;
	/** Threads of one batch, including the caller's; default: one per processor. */
	uint32_t threads;
	/**
	 * Bytes that the session may keep: decompressed sections, indexes, decoded functions.
	 * Default 1 GiB. Decoded functions are dropped to stay within it. A section that does not
	 * fit is not decompressed, which its answers say (FATHOM_REASON_LIMIT); nor is a file
	 * (FATHOM_E_LIMIT). The matches of fathom_find() must fit, too (FATHOM_E_LIMIT), but no
	 * longer count once returned.
	 */
	uint64_t memory_budget;
	/**
	 * Directory of the index cache; default: $XDG_CACHE_HOME/fathom, else ~/.cache/fathom; none
	 * in a secure process, or if that folder of the variable belongs to neither this user nor
	 * root.
	 */
	const char *cache_dir;
	/** Total bytes of the files in cache_dir; default 2 GiB. */
	uint64_t cache_limit;
	/** Total milliseconds of all debuginfod requests; default 10,000. */
	uint32_t debuginfod_timeout_ms;
	/**
	 * Total milliseconds, in any minute, of waits for file systems that do not answer (FUSE,
	 * NFS, SMB and others whose server is gone). Their files are left out, with a note
	 * (FATHOM_REASON_TIMEOUT), or cannot be opened (FATHOM_E_TIMEOUT). For files on such file
	 * systems, a process without descriptors or parent is forked to touch them first, and is
	 * left behind if it gets stuck. Default 0: files are opened directly, and a thread that
	 * waits for a dead server waits for ever.
	 */
	uint32_t file_timeout_ms;
	/**
	 * Called during every call that can take long, on the calling thread, with no lock held: as
	 * a rule after 10 ms of work at most, also while other threads work for the call. It may be
	 * called several times with the same numbers. If it returns FATHOM_CANCEL instead of
	 * FATHOM_GO_ON, the call soon returns FATHOM_E_CANCELLED. The session and everything opened
	 * before stay whole, and the call can be made again. So that this is soon, sections of 16
	 * MiB or more are decompressed in steps, which takes zlib twice as long, unless flags has
	 * FATHOM_WHOLE_SECTIONS. NULL: not called.
	 */
	int (*progress)(void *data, const struct fathom_progress *p);
	void *progress_data;
	/** <fathom/compat.h>; NULL: none. */
	const struct fathom_compat_options *compat;
	uint64_t reserved[3];
};

/**
 * Creates a session with @options, which may be NULL and are copied.
 *
 * Safety: mt-safe
 * Memory: *@ret_session is the caller's, to be freed with fathom_destroy()
 * Returns: FATHOM_OK, FATHOM_E_ARGUMENT or FATHOM_E_MEMORY; *@ret_session is set on success only
 */
FATHOM_API fathom_err fathom_create(const struct fathom_options *options,
				    struct fathom **ret_session, struct fathom_errinfo *reterr);

/**
 * Releases @session, which may be NULL. It lives on until its last target and struct fathom_self
 * are gone; release those before or after this call.
 *
 * Safety: neither
 * Memory: frees @session once nothing opened in it is left
 * Returns: nothing
 */
FATHOM_API void fathom_destroy(struct fathom *session);

/**
 * Handles a SIGBUS at @address, for the program's own signal handler; pass siginfo_t.si_addr.
 *
 * Files are memory-mapped. Reading a page of a file that was truncated, or whose disk fails, raises
 * SIGBUS in the reading thread: in any call that takes a session, a target or a struct fathom_self,
 * except as-safe ones, and in the threads that such a call starts. (The library installs no
 * handler. Its threads block all signals except those that faults raise.) If @address lies in a
 * file that @session has mapped, the rest of the mapping is replaced by zeros and the handler may
 * return. The call then continues and returns FATHOM_E_CHANGED with the file's name; for a process,
 * core or kernel, addresses in that file are answered with FATHOM_REASON_CHANGED. Calls that take
 * only results (answers, matches, disassemblies, values) read no file and raise nothing.
 *
 * The strings and bytes of fathom_target_get_info(), fathom_target_section() and
 * fathom_target_symbol() lie in mapped files. So do, in handlers, the tables that
 * fathom_self_prepare() took from the index cache; the library replaces cache files and never
 * writes to them in place.
 *
 * Safety: as-safe; mt-safe
 * Memory: maps zeros over a file of @session
 * Returns: 1 if the fault is handled and the handler may return; 0 if no file of @session is at
 *	@address: the program handles the fault as if there were no session
 */
FATHOM_API int fathom_handle_sigbus(struct fathom *session, const void *address);

/** Current memory use of a session. */
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

/**
 * Returns whether the calling process has more rights than the user who has started it: it is a
 * set-user-ID or set-group-ID program or has capabilities of its file (AT_SECURE), or its real and
 * effective user or group differ now. The library then obeys no environment variable, and no flag
 * of libfathom-trace.
 *
 * Safety: mt-safe
 * Memory: none
 * Returns: 1 or 0
 */
FATHOM_API int fathom_is_secure(void);

/**
 * Looks up the environment variable @name as getenv(3) does, but finds nothing in a secure process,
 * as fathom_is_secure() has it: of more kinds than secure_getenv(3) knows.
 *
 * Safety: mt-safe, while no thread changes the environment
 * Memory: the text belongs to the environment
 * Returns: the value; NULL if there is none, or the process is secure
 */
FATHOM_API const char *fathom_secure_getenv(const char *name);

/**
 * Finds the program @name: the first file along PATH that may be run, or in /usr/local/bin,
 * /usr/bin and /bin where fathom_secure_getenv() finds no PATH; with a slash, @name itself. Writes
 * its path, at most @cap bytes with the NUL, to @path. @is_left_out, which may be NULL, returns
 * other than 0 for paths that are passed over.
 *
 * Safety: mt-safe, while no thread changes the environment
 * Memory: none
 * Returns: 1; 0 if there is none
 */
FATHOM_API int fathom_find_program(const char *name, int (*is_left_out)(const char *path),
				   char *path, size_t cap);

#ifdef __cplusplus
}
#endif

#endif
