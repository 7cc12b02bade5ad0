/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Limits: why answers lack names or lines, and what fathom cannot do here. Modules without lines,
 * processes that may not be attached to, libraries that are missing, servers that do not answer.
 */
#ifndef FATHOM_LIMITS_H
#define FATHOM_LIMITS_H

#include <fathom/answer.h>
#include <fathom/error.h>
#include <fathom/session.h>
#include <fathom/target.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The modules of a target, in address order. Opaque; independent of the target once made. */
struct fathom_modules;

/** One module, and whether its addresses have lines. The library may add members at the end. */
struct fathom_module_state {
	const struct fathom_module_info *module; /**< path and build-id */
	const char *debug_path; /**< file with its debug information; NULL: there is none */
	uint64_t start;         /**< address of its first byte; 0 for a file */
	uint8_t reason;         /**< enum fathom_reason: why it has no lines; NONE: it has them */
	uint8_t is_deleted;     /**< 1: the process runs a file that was deleted or replaced */
	uint8_t reserved[6];
};

/**
 * Opens every module of @target and its debug information, and lists them. Modules whose file
 * cannot be opened are missing; fathom_target_note() says why. Code of JIT compilers is in no
 * module.
 *
 * Safety: mt-safe
 * Memory: *@ret_modules is the caller's, to be freed with fathom_modules_free()
 * Returns: FATHOM_OK or FATHOM_E_MEMORY; for a process also what fathom_target_open_process()
 *	returns: it may have ended; FATHOM_E_CANCELLED
 */
FATHOM_API fathom_err fathom_modules_read(struct fathom_target *target,
					  struct fathom_modules **ret_modules,
					  struct fathom_errinfo *reterr);

/**
 * Safety: neither
 * Memory: frees @modules, which may be NULL, and all that was reached through it
 * Returns: nothing
 */
FATHOM_API void fathom_modules_free(struct fathom_modules *modules);

/**
 * Safety: mt-safe
 * Memory: none
 * Returns: the number of modules
 */
FATHOM_API size_t fathom_modules_count(const struct fathom_modules *modules);

/**
 * Safety: mt-safe
 * Memory: the state belongs to @modules
 * Returns: module @i, which must be below the count
 */
FATHOM_API const struct fathom_module_state *fathom_modules_get(
	const struct fathom_modules *modules, size_t i);

/**
 * Checks whether this process may attach to the process of @target, as ptrace(2) does: without
 * that, memory cannot be read, and threads that run have no stacks. Does not stop it. With NULL,
 * checks what forbids this process to attach to any that is not its child: Yama, or a filter of
 * system calls.
 *
 * Safety: mt-safe
 * Memory: none
 * Returns: FATHOM_OK; FATHOM_E_OS, with the cause in *@reterr: FATHOM_CAUSE_YAMA,
 *	FATHOM_CAUSE_FILTERED, FATHOM_CAUSE_OTHER_USER, FATHOM_CAUSE_MORE_RIGHTS, or
 *	FATHOM_CAUSE_NONE if another process traces it; FATHOM_E_UNSUPPORTED if @target is no
 *	process; FATHOM_E_NOT_FOUND if the process has ended
 */
FATHOM_API fathom_err fathom_attach_check(struct fathom_target *target,
					  struct fathom_errinfo *reterr);

/** States of an optional library. */
enum fathom_feature_state {
	FATHOM_FEATURE_READY = 0,
	FATHOM_FEATURE_NOT_INSTALLED = 1, /**< it is opened when it is needed, and is not there */
	FATHOM_FEATURE_LEFT_OUT = 2       /**< fathom was built without it */
};

/** An optional library. Set size to sizeof(struct fathom_feature) before the call. */
struct fathom_feature {
	size_t size;
	const char *name; /**< such as "zstd"; static */
	const char *use;  /**< what fathom does with it; static */
	char library[32]; /**< its file if it is opened when needed, else its name */
	uint8_t state;    /**< enum fathom_feature_state */
	uint8_t reserved1[7];
	uint64_t reserved[3];
};

/**
 * Tries optional library @i, counted from 0: uses it, or opens it. What it has opened stays, so a
 * program that is about to enter a sandbox where no file can be opened calls it for all before.
 *
 * Safety: mt-safe
 * Memory: writes *@ret, whose size is set
 * Returns: 1; 0 after the last one, or for a size that this version does not know
 */
FATHOM_API int fathom_feature_get(size_t i, struct fathom_feature *ret);

/**
 * Asks the debuginfod servers of $DEBUGINFOD_URLS for a file that no server has, which at least one
 * of them must answer within the session's debuginfod_timeout_ms. The session need not enable
 * debuginfod. libdebuginfod notes the missing file in its cache.
 *
 * Safety: mt-safe
 * Memory: none
 * Returns: FATHOM_OK when one has answered; FATHOM_E_NOT_FOUND when no server is named;
 *	FATHOM_E_TIMEOUT; FATHOM_E_OS when none can be reached, with errno in *@reterr;
 *	FATHOM_E_UNSUPPORTED without libdebuginfod; FATHOM_E_CANCELLED; FATHOM_E_MEMORY
 */
FATHOM_API fathom_err fathom_debuginfod_check(struct fathom *session,
					      struct fathom_errinfo *reterr);

#ifdef __cplusplus
}
#endif

#endif
