/* SPDX-License-Identifier: MIT */
/**
 * @file
 * How fathom reports errors.
 *
 * Every call that can fail returns a fathom_err. Zero is success, negative values are classes of
 * failure. The list only grows, so callers may compare. To learn *where* a call failed, pass a
 * struct fathom_errinfo: plain data on your own stack, with nothing to free, written on failure
 * only.
 *
 * One bad address never fails a batch: enum fathom_reason (fathom/answer.h) says what went wrong
 * with a single address.
 */
#ifndef FATHOM_ERROR_H
#define FATHOM_ERROR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if !defined(FATHOM_API) && defined(__GNUC__)
#define FATHOM_API __attribute__((visibility("default")))
#elif !defined(FATHOM_API)
#define FATHOM_API
#endif

/** 0, or one of the FATHOM_E_ values. */
typedef int32_t fathom_err;

/** Values of fathom_err. */
enum fathom_err_value {
	FATHOM_OK = 0,
	FATHOM_E_ARGUMENT = -1,    /**< an argument is invalid */
	FATHOM_E_MEMORY = -2,      /**< an allocation failed */
	FATHOM_E_OS = -3,          /**< the system refused; os_errno says why */
	FATHOM_E_FORMAT = -4,      /**< not a kind of file that fathom reads */
	FATHOM_E_CORRUPT = -5,     /**< the right kind, but its bytes contradict the format */
	FATHOM_E_LIMIT = -6,       /**< a limit was reached; the error names it */
	FATHOM_E_UNSUPPORTED = -7, /**< valid, but fathom (or this build of it) does not read it */
	FATHOM_E_MISMATCH = -8,    /**< a debug file that belongs to another file */
	FATHOM_E_NOT_FOUND = -9,   /**< no such file, section or symbol */
	FATHOM_E_TIMEOUT = -10,    /**< a deadline passed */
	FATHOM_E_CANCELLED = -11,  /**< the caller asked to stop */
	FATHOM_E_CHANGED = -12     /**< a file was truncated while it was being read */
};

/** The cause of an error that has a specific remedy. The list only grows. */
enum fathom_cause {
	FATHOM_CAUSE_NONE = 0,
	FATHOM_CAUSE_BUDGET = 1,       /**< the session's memory budget is too small */
	FATHOM_CAUSE_OTHER_USER = 2,   /**< the process belongs to another user */
	FATHOM_CAUSE_NOT_DUMPABLE = 3, /**< the process is not dumpable (prctl(2)) */
	FATHOM_CAUSE_MORE_RIGHTS = 4,  /**< the user's own process, with capabilities we lack */
	FATHOM_CAUSE_HIDDEN = 5,       /**< /proc does not show the process (hidepid) */
	FATHOM_CAUSE_NO_PROC = 6,      /**< there is no /proc */
	FATHOM_CAUSE_DEBUG_FILE = 7,   /**< the debug file is of another build */
	FATHOM_CAUSE_MAPPED_FILE = 8,  /**< the mapped file was deleted or replaced */
	FATHOM_CAUSE_NOT_TRUSTED = 9,  /**< users other than the process's owner could write it */
	FATHOM_CAUSE_DEBUGINFOD = 10,  /**< the debuginfod timeout expired */
	FATHOM_CAUSE_WRITE = 11,       /**< writing the file failed */
	FATHOM_CAUSE_SILENT = 12,      /**< its file system's server is gone or slow */
	FATHOM_CAUSE_CHANGE = 13,     /**< fathom_jit_commit(): offset is the number in its array */
	FATHOM_CAUSE_EVENT = 14,      /**< the same, and part that of an event of its rule */
	FATHOM_CAUSE_LINE = 15,       /**< the same, and part that of a line */
	FATHOM_CAUSE_INLINE = 16,     /**< the same, and part that of an inlined call */
	FATHOM_CAUSE_UNVERIFIED = 17, /**< nothing proves that it is the file that was mapped */
	FATHOM_CAUSE_UNNAMED = 18,    /**< the core does not tell the path of the program */
	FATHOM_CAUSE_YAMA = 19,       /**< kernel.yama.ptrace_scope forbids to trace it */
	FATHOM_CAUSE_FILTERED = 20,   /**< a filter of system calls forbids ptrace(2) */
	FATHOM_CAUSE_NOT_INSTALLED = 21, /**< an optional library is not installed */
	FATHOM_CAUSE_TEXT_LINE = 22      /**< offset is the number of a line of the file, from 1 */
};

/** Where and why a call failed. Plain data; copy it freely. */
struct fathom_errinfo {
	fathom_err err;
	int32_t os_errno; /**< errno with FATHOM_E_OS, else 0 */
	uint64_t offset;  /**< in section, or in the file if section is empty, bytes */
	const char *what; /**< what is wrong; static text */
	char section[32]; /**< section name, cut to fit; "" for none */
	char file[256];   /**< path of the file; only its end if it is longer */
	uint32_t cause;   /**< enum fathom_cause */
	uint32_t part;    /**< as the cause says, counted from 0; else 0 */
};

/**
 * Returns the class of an error in words, such as "corrupt data".
 *
 * Safety: as-safe
 * Memory: the text is static
 * Returns: never NULL; "unknown error" for a value this library does not define
 */
FATHOM_API const char *fathom_err_name(fathom_err err);

/**
 * Writes one line of text for @info to @buf: `FILE: SECTION+0xOFFSET: WHAT`, or `FILE: at 0xOFFSET:
 * WHAT` if the damage is outside any section, `change N, event N: WHAT` and the like of published
 * code, `FILE: line N: WHAT` of text, without the parts that do not apply. Cuts the text to
 * fit @cap, and ends it with a NUL if @cap is not 0.
 *
 * Safety: as-safe
 * Memory: writes only to @buf
 * Returns: the length of the uncut text, without the NUL
 */
FATHOM_API size_t fathom_errinfo_format(const struct fathom_errinfo *info, char *buf, size_t cap);

#ifdef __cplusplus
}
#endif

#endif
