/* SPDX-License-Identifier: MIT */
/**
 * @file
 * How fathom says that something went wrong.
 *
 * Every call that can fail returns a fathom_err. Zero is success, negative values are classes of
 * failure: the list only grows, so a caller may compare. A caller who wants to know *where* passes
 * a struct fathom_errinfo, which is plain data on the caller's own stack: nothing in it needs to be
 * freed. It is written on failure only.
 *
 * One bad address never fails a batch: what went wrong with a single address is its enum
 * fathom_reason (fathom/symbolize.h).
 */
#ifndef FATHOM_ERROR_H
#define FATHOM_ERROR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define FATHOM_API __attribute__((visibility("default")))
#else
#define FATHOM_API
#endif

/** 0, or one of the FATHOM_E_ values. */
typedef int32_t fathom_err;

/** Values of fathom_err. */
enum fathom_err_value {
	FATHOM_OK = 0,
	FATHOM_E_ARGUMENT = -1,    /**< the caller passed something that no call accepts */
	FATHOM_E_MEMORY = -2,      /**< an allocation failed */
	FATHOM_E_OS = -3,          /**< the system refused; os_errno says why */
	FATHOM_E_FORMAT = -4,      /**< not a file of a kind that fathom reads */
	FATHOM_E_CORRUPT = -5,     /**< of the right kind, but its bytes contradict its format */
	FATHOM_E_LIMIT = -6,       /**< a stated limit was met; the limit is named */
	FATHOM_E_UNSUPPORTED = -7, /**< valid, but fathom (or this build of it) does not read it */
	FATHOM_E_MISMATCH = -8,    /**< a debug file that belongs to another file */
	FATHOM_E_NOT_FOUND = -9,   /**< no such file, section or symbol */
	FATHOM_E_TIMEOUT = -10,    /**< a deadline passed */
	FATHOM_E_CANCELLED = -11,  /**< the caller asked to stop */
	FATHOM_E_CHANGED = -12     /**< a file was truncated while it was being read */
};

/** What is behind an error where something particular helps. The list only grows. */
enum fathom_cause {
	FATHOM_CAUSE_NONE = 0,
	FATHOM_CAUSE_BUDGET = 1,       /**< the session's memory budget is too small */
	FATHOM_CAUSE_OTHER_USER = 2,   /**< the process belongs to another user */
	FATHOM_CAUSE_NOT_DUMPABLE = 3, /**< the process hides even from its own user (prctl(2)) */
	FATHOM_CAUSE_MORE_RIGHTS = 4,  /**< the user's own process, with more rights than we have */
	FATHOM_CAUSE_HIDDEN = 5,       /**< /proc does not show the process (hidepid) */
	FATHOM_CAUSE_NO_PROC = 6,      /**< there is no /proc */
	FATHOM_CAUSE_DEBUG_FILE = 7,   /**< the debug file is of another build */
	FATHOM_CAUSE_MAPPED_FILE = 8,  /**< the file that was mapped is no more, or is another */
	FATHOM_CAUSE_NOT_TRUSTED = 9,  /**< others than the process's user can have written it */
	FATHOM_CAUSE_DEBUGINFOD = 10,  /**< the servers had too little time */
	FATHOM_CAUSE_WRITE = 11,       /**< the file was to be written */
	FATHOM_CAUSE_SILENT = 12       /**< the server of its file system is gone, or slow */
};

/** Where and why a call failed. Plain data; copy it freely. */
struct fathom_errinfo {
	fathom_err err;
	int32_t os_errno; /**< the errno of FATHOM_E_OS, else 0 */
	uint64_t offset;  /**< offset in section, or in the file where section is empty, in bytes */
	const char *what; /**< static text: what is wrong there */
	char section[32]; /**< section name, "" where none is concerned; cut to fit */
	char file[256];   /**< path of the file concerned; the end of it where it is longer */
	uint32_t cause;   /**< enum fathom_cause */
	uint32_t reserved;
};

/**
 * The class of an error in words, such as "corrupt data".
 *
 * Safety: as-safe
 * Memory: the text is static
 * Returns: never NULL; "unknown error" for a value this library does not define
 */
FATHOM_API const char *fathom_err_name(fathom_err err);

/**
 * Writes one line of text for @info into @buf: `FILE: SECTION+0xOFFSET: WHAT`, or `FILE: at
 * 0xOFFSET: WHAT` where the damage is in no section; the parts that do not apply left out. Always
 * ends with a NUL when @cap is not 0; cut when it does not fit.
 *
 * Safety: as-safe
 * Memory: writes only to @buf
 * Returns: the length of the whole text, without the NUL, whether it fitted or not
 */
FATHOM_API size_t fathom_errinfo_format(const struct fathom_errinfo *info, char *buf, size_t cap);

#ifdef __cplusplus
}
#endif

#endif
