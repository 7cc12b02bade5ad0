/* SPDX-License-Identifier: MIT */
/*
 * Finding the debug files of an ELF file: in the order of the GDB manual, "Debugging Information in
 * Separate Files": by build-id, by .gnu_debuglink, from debuginfod; and what those refer to: the
 * supplementary file of dwz, package files of split DWARF, and MiniDebugInfo inside the file.
 *
 * A candidate that does not match is never used; it becomes a note.
 */
#ifndef FATHOM_FILE_DEBUG_SEARCH_H
#define FATHOM_FILE_DEBUG_SEARCH_H

#include "host/base/context.h"
#include "host/file/object.h"

/* Collects what went wrong on the way. */
struct fathom_notes;

/*
 * The file with the debug information of @main, or NULL. @ret_refused says whether a candidate was
 * found that belongs to another file, @ret_timeout whether debuginfod did not answer in time.
 */
struct fathom_object *fathom_debugfile_find(struct fathom *session,
					    const struct fathom_object *main,
					    struct fathom_notes *notes, bool *ret_refused,
					    bool *ret_timeout);

/* The file that .gnu_debugaltlink (or .debug_sup) of @debug names, or NULL: it names none, or
 * *@ret_missing. */
struct fathom_object *fathom_debugfile_find_sup(struct fathom *session,
						const struct fathom_object *debug,
						struct fathom_notes *notes, bool *ret_missing);

/* The ELF file inside .gnu_debugdata of @main, or NULL. */
struct fathom_object *fathom_debugfile_mini(struct fathom *session,
					    const struct fathom_object *main,
					    struct fathom_notes *notes);

/* The file at @path, or NULL with a note when it is there but cannot be used. */
struct fathom_object *fathom_debugfile_try(struct fathom *session, const char *path,
					   struct fathom_notes *notes);

/* The same, only if its build-id is @build_id; else a note, and *@ret_refused is set. */
struct fathom_object *fathom_debugfile_try_id(struct fathom *session, const char *path,
					      struct fathom_bytes build_id,
					      struct fathom_notes *notes, bool *ret_refused);

/* The file with @build_id in the directories of debug files below @root, or NULL. */
struct fathom_object *fathom_debugfile_by_id(struct fathom *session, const char *root,
					     struct fathom_bytes build_id,
					     struct fathom_notes *notes, bool *ret_refused);

#endif
