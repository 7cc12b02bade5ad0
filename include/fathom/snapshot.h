/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Snapshots: all that is needed to name the addresses of a process after it has ended.
 */
#ifndef FATHOM_SNAPSHOT_H
#define FATHOM_SNAPSHOT_H

#include <fathom/error.h>
#include <fathom/target.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Writes a snapshot of @target, a process or core, to @path: its current mappings, the first pages
 * and build-ids that identify its files, and the whole [vdso], but not the files themselves. For
 * JIT code it stores GDB's JIT list with its symbol files, and the names of jitdumps and perf maps,
 * as they are now. fathom_target_open_file() opens a snapshot.
 *
 * The file is replaced atomically; only its owner can read it.
 *
 * Safety: mt-safe
 * Memory: borrows @target and @path
 * Returns: FATHOM_OK; FATHOM_E_ARGUMENT when @target is a file; FATHOM_E_OS, with the file named in
 *	*@reterr; FATHOM_E_NOT_FOUND when the process has ended; FATHOM_E_TIMEOUT when it keeps
 *	loading and unloading files; FATHOM_E_MEMORY
 */
FATHOM_API fathom_err fathom_snapshot_write(struct fathom_target *target, const char *path,
					    struct fathom_errinfo *reterr);

#ifdef __cplusplus
}
#endif

#endif
