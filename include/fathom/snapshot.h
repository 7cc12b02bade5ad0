/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Snapshots: what has to be known of a process to name its addresses when it is gone.
 */
#ifndef FATHOM_SNAPSHOT_H
#define FATHOM_SNAPSHOT_H

#include <fathom/error.h>
#include <fathom/target.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Writes to @path what is mapped where in @target, a process or core, now, and by what its files
 * are known again: their first pages and build-ids; [vdso] is stored whole. The files themselves
 * are not. Of code that the process has made itself, what is said of it now is stored: GDB's list
 * with its symbol files, the names of jitdumps and perf maps. fathom_target_open_file() opens what
 * was written.
 *
 * The file is replaced atomically, and may be read by its owner only.
 *
 * Safety: mt-safe
 * Memory: borrows @target and @path
 * Returns: FATHOM_OK; FATHOM_E_ARGUMENT when @target is a file; FATHOM_E_OS, with the file named
 *	in *@reterr; FATHOM_E_NOT_FOUND when the process has ended; FATHOM_E_TIMEOUT when it loads
 *	and unloads files all the time; FATHOM_E_MEMORY
 */
FATHOM_API fathom_err fathom_snapshot_write(struct fathom_target *target, const char *path,
					    struct fathom_errinfo *reterr);

#ifdef __cplusplus
}
#endif

#endif
