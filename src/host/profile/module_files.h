/* SPDX-License-Identifier: MIT */
/* Files of the modules of a profile: those with the build-id that was recorded. */
#ifndef FATHOM_PROFILE_MODULE_FILES_H
#define FATHOM_PROFILE_MODULE_FILES_H

#include <stdbool.h>

#include "fathom/profile.h"
#include "fathom/target.h"

/*
 * Takes what is wanted from @t, a file of the module, and sets *@ret_done if it has it: else the
 * next file is tried. FATHOM_E_CANCELLED, FATHOM_E_MEMORY and FATHOM_E_ARGUMENT end the search.
 */
typedef fathom_err fathom_module_file_fn(void *data, struct fathom_target *t, bool *ret_done,
					 struct fathom_errinfo *reterr);

/* A search for the file of a module. */
struct fathom_module_files {
	struct fathom *session;
	const struct fathom_profile_module *module;
	const char *sysroot;           /* tried first; NULL: none */
	const char *const *debug_dirs; /* NULL: the usual ones */
	bool takes_any;                /* any file at a path that is tried serves */
	fathom_module_file_fn *use;
	void *data;
	enum fathom_reason reason; /* why no file has served, the most telling */
};

/* Tries the path of the module, below sysroot first, then the debug directories. */
fathom_err fathom_module_files_try(struct fathom_module_files *f, bool *ret_done,
				   struct fathom_errinfo *reterr);
/* Tries the debug directories: what they have of the build-id, the file and its debug file. */
fathom_err fathom_module_files_try_debug(struct fathom_module_files *f, bool *ret_done,
					 struct fathom_errinfo *reterr);

/* Tries their files of the build-id that end with @suffix: "" or ".debug". */
fathom_err fathom_module_files_try_id(struct fathom_module_files *f, const char *suffix,
				      bool *ret_done, struct fathom_errinfo *reterr);
/* Tries the file at @path. */
fathom_err fathom_module_files_try_path(struct fathom_module_files *f, const char *path,
					bool *ret_done, struct fathom_errinfo *reterr);

/* Returns whether @err ends the search. */
static inline bool fathom_module_files_is_fatal(fathom_err err)
{
	return err == FATHOM_E_CANCELLED || err == FATHOM_E_MEMORY || err == FATHOM_E_ARGUMENT;
}

/* Returns whether @id, of @size bytes, is the build-id of @m: none, if it has none. */
bool fathom_module_is_build(const struct fathom_profile_module *m, const uint8_t *id,
			    uint32_t size);

#endif
