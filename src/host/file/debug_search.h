/* SPDX-License-Identifier: MIT */
/*
 * Finds the debug files of an ELF file, in the order of the GDB manual ("Debugging Information in
 * Separate Files"): by build-id, by .gnu_debuglink, from debuginfod. Also finds what those refer
 * to: dwz's supplementary file, package files of split DWARF, and MiniDebugInfo inside the file.
 *
 * A candidate that does not match is never used; it becomes a note.
 *
 * A call that is given up finds nothing, without a note: the caller then asks fathom_is_cancelled()
 * and keeps no result.
 */
#ifndef FATHOM_FILE_DEBUG_SEARCH_H
#define FATHOM_FILE_DEBUG_SEARCH_H

#include "host/base/path.h"
#include "host/base/search_paths.h"
#include "host/file/object.h"

struct fathom_notes;

/*
 * Finds the file with the debug information of @main; NULL if there is none. Sets @ret_refused if a
 * candidate belongs to another file, @ret_timeout if debuginfod did not answer in time.
 */
struct fathom_object *fathom_debugfile_find(const struct fathom_search_paths *paths,
					    const struct fathom_object *main,
					    struct fathom_notes *notes, bool *ret_refused,
					    bool *ret_timeout);

/*
 * Finds the file that .gnu_debugaltlink (or .debug_sup) of @debug names. Returns NULL if it names
 * none, or if the file is missing (sets *@ret_missing).
 */
struct fathom_object *fathom_debugfile_find_sup(const struct fathom_search_paths *paths,
						const struct fathom_object *debug,
						struct fathom_notes *notes, bool *ret_missing);

/* Opens the ELF file in .gnu_debugdata of @main; NULL if there is none. */
struct fathom_object *fathom_debugfile_mini(const struct fathom_search_paths *paths,
					    const struct fathom_object *main,
					    struct fathom_notes *notes);

/* Opens the file at @path. Returns NULL if it does not exist, or, with a note, cannot be used. */
struct fathom_object *fathom_debugfile_try(const struct fathom_search_paths *paths,
					   const char *path, struct fathom_notes *notes);

/* Does the same if the build-id is @build_id. Else adds a note and sets *@ret_refused. */
struct fathom_object *fathom_debugfile_try_id(const struct fathom_search_paths *paths,
					      const char *path, struct fathom_bytes build_id,
					      struct fathom_notes *notes, bool *ret_refused);

/* Finds the file with @build_id in the debug directories below @root; NULL if there is none. */
struct fathom_object *fathom_debugfile_by_id(const struct fathom_search_paths *paths,
					     const char *root, struct fathom_bytes build_id,
					     struct fathom_notes *notes, bool *ret_refused);

/* Formats the path of what has @id in @dir: "DIR/.build-id/ab/cdef" and @suffix, below @sysroot. */
bool fathom_debugfile_id_path(const char *sysroot, const char *dir, struct fathom_bytes id,
			      const char *suffix, struct fathom_path *ret);

/*
 * Finds the program or library with @build_id in the debug directories, where distributions link
 * it as ".build-id/ab/cdef" (GDB manual, "Debugging Information in Separate Files"); or NULL.
 */
struct fathom_object *fathom_debugfile_program_by_id(const struct fathom_search_paths *paths,
						     struct fathom_bytes build_id,
						     struct fathom_notes *notes);

#endif
