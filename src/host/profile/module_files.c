/* SPDX-License-Identifier: MIT */
#include "host/profile/module_files.h"

#include <errno.h>
#include <string.h>

#include "host/base/path.h"
#include "host/base/search_paths.h"
#include "host/file/debug_search.h"
#include "host/file/file.h"
#include "safe/base/error.h"

/* Returns how much @reason tells: a file that is there tells more than one that is not. */
static int rank(enum fathom_reason reason)
{
	return reason == FATHOM_REASON_NONE ? 0 : reason == FATHOM_REASON_NO_FILE ? 1 : 2;
}

static void note_reason(struct fathom_module_files *f, enum fathom_reason reason)
{
	if (rank(reason) > rank(f->reason))
		f->reason = reason;
}

/* Returns why a file that could not be read does not serve. */
static enum fathom_reason reason_of(const struct fathom_errinfo *info)
{
	switch (info->err) {
	case FATHOM_E_OS:
		return info->os_errno == EACCES || info->os_errno == EPERM
			       ? FATHOM_REASON_NO_PERMISSION
			       : FATHOM_REASON_NO_FILE;
	case FATHOM_E_TIMEOUT:
		return FATHOM_REASON_TIMEOUT;
	case FATHOM_E_LIMIT:
		return FATHOM_REASON_LIMIT;
	case FATHOM_E_CHANGED:
		return FATHOM_REASON_CHANGED;
	case FATHOM_E_CORRUPT:
		return FATHOM_REASON_CORRUPT;
	}
	return FATHOM_REASON_NO_FILE;
}

bool fathom_module_is_build(const struct fathom_profile_module *m, const uint8_t *id, uint32_t size)
{
	return size == m->build_id_size && (!size || memcmp(id, m->build_id, size) == 0);
}

/* Returns whether the file at @path, where build-ids do not differ, is that of @m. */
static bool is_same_file(const struct fathom_profile_module *m, const char *path)
{
	struct fathom_file_id id;

	return m->build_id_size || (m->file_size && fathom_file_identify(path, &id) &&
				    id.size == m->file_size && (uint64_t)id.mtime_ns == m->changed);
}

/* Uses @t, the file at @path, if it is the module's. */
static fathom_err use_file(struct fathom_module_files *f, struct fathom_target *t, const char *path,
			   bool *ret_done, struct fathom_errinfo *reterr)
{
	struct fathom_target_info info;

	fathom_target_get_info(t, &info);
	if (info.kind == FATHOM_TARGET_FILE &&
	    (f->takes_any ||
	     (fathom_module_is_build(f->module, info.build_id, info.build_id_size) &&
	      is_same_file(f->module, path))))
		return f->use(f->data, t, ret_done, reterr);
	note_reason(f, FATHOM_REASON_BUILD_ID_MISMATCH);
	return FATHOM_OK;
}

fathom_err fathom_module_files_try_path(struct fathom_module_files *f, const char *path,
					bool *ret_done, struct fathom_errinfo *reterr)
{
	const struct fathom_target_options where = { .size = sizeof where,
						     .sysroot = f->sysroot,
						     .debug_dirs = f->debug_dirs };
	struct fathom_errinfo why = { .err = FATHOM_OK };
	struct fathom_target *t;
	fathom_err err = fathom_target_open_file(f->session, path, &where, &t, &why);

	if (!err) {
		err = use_file(f, t, path, ret_done, &why);
		fathom_target_release(t);
	}
	if (!err)
		return FATHOM_OK;
	note_reason(f, reason_of(&why));
	if (!fathom_module_files_is_fatal(err))
		return FATHOM_OK;
	if (reterr)
		*reterr = why;
	return err;
}

/* Tries the file of the build-id in @dir, a debug directory. */
static fathom_err try_dir(struct fathom_module_files *f, const char *dir, const char *suffix,
			  bool *ret_done, struct fathom_errinfo *reterr)
{
	const struct fathom_bytes id = { f->module->build_id, f->module->build_id_size };
	struct fathom_path path;

	if (!fathom_debugfile_id_path(f->sysroot ? f->sysroot : "", dir, id, suffix, &path))
		return FATHOM_OK;
	return fathom_module_files_try_path(f, path.text, ret_done, reterr);
}

fathom_err fathom_module_files_try_debug(struct fathom_module_files *f, bool *ret_done,
					 struct fathom_errinfo *reterr)
{
	static const char *const suffixes[] = { "", ".debug" };
	const char *const *dirs = fathom_debug_dirs(f->debug_dirs);

	for (; *dirs && !*ret_done; dirs++)
		for (size_t i = 0; i < 2 && !*ret_done; i++)
			FATHOM_TRY(try_dir(f, *dirs, suffixes[i], ret_done, reterr));
	return FATHOM_OK;
}

fathom_err fathom_module_files_try_id(struct fathom_module_files *f, const char *suffix,
				      bool *ret_done, struct fathom_errinfo *reterr)
{
	const char *const *dirs = fathom_debug_dirs(f->debug_dirs);

	for (; *dirs && !*ret_done; dirs++)
		FATHOM_TRY(try_dir(f, *dirs, suffix, ret_done, reterr));
	return FATHOM_OK;
}

fathom_err fathom_module_files_try(struct fathom_module_files *f, bool *ret_done,
				   struct fathom_errinfo *reterr)
{
	struct fathom_path path;

	if (f->module->path[0] == '/') {
		if (f->sysroot && *f->sysroot &&
		    fathom_path_format(&path, "%s%s", f->sysroot, f->module->path))
			FATHOM_TRY(fathom_module_files_try_path(f, path.text, ret_done, reterr));
		if (!*ret_done)
			FATHOM_TRY(
				fathom_module_files_try_path(f, f->module->path, ret_done, reterr));
	}
	return *ret_done ? FATHOM_OK : fathom_module_files_try_debug(f, ret_done, reterr);
}
