/* SPDX-License-Identifier: MIT */
#include "host/fleet/build_search.h"

#include <stdlib.h>

#include "host/base/path.h"
#include "host/file/debuginfod.h"
#include "host/fleet/download_turn.h"
#include "host/module/cache_read.h"
#include "host/module/module.h"
#include "host/profile/module_files.h"
#include "host/space/target.h"
#include "host/store/asked_in_turn.h"
#include "safe/base/error.h"

/* Keeps @t, the file of the build, for *@data. */
static fathom_err keep(void *data, struct fathom_target *t, bool *ret_done,
		       struct fathom_errinfo *reterr)
{
	struct fathom_target **ret = data;

	(void)reterr;
	*ret = fathom_target_acquire(t);
	*ret_done = true;
	return FATHOM_OK;
}

/* Tries the module's path, first below the sysroot. */
static fathom_err try_path(struct fathom_module_files *f, const char *path, bool *ret_done,
			   struct fathom_errinfo *reterr)
{
	struct fathom_path below;

	if (f->sysroot && *path == '/' && fathom_path_format(&below, "%s%s", f->sysroot, path))
		FATHOM_TRY(fathom_module_files_try_path(f, below.text, ret_done, reterr));
	return *ret_done ? FATHOM_OK : fathom_module_files_try_path(f, path, ret_done, reterr);
}

/* Tries @name, a file name, in the module directories. */
static fathom_err try_dirs(const struct fathom_build_places *places, struct fathom_module_files *f,
			   const char *name, bool *ret_done, struct fathom_errinfo *reterr)
{
	struct fathom_path path;

	for (char **dir = places->module_dirs; *name && dir && *dir && !*ret_done; dir++)
		if (fathom_path_format(&path, "%s/%s", *dir, name))
			FATHOM_TRY(fathom_module_files_try_path(f, path.text, ret_done, reterr));
	return FATHOM_OK;
}

/* Tries what the module is called. */
static fathom_err try_module(const struct fathom_build_places *places,
			     struct fathom_module_files *f, bool *ret_done,
			     struct fathom_errinfo *reterr)
{
	const char *const name = fathom_path_last_part(f->module->path);

	if (name != f->module->path)
		FATHOM_TRY(try_path(f, f->module->path, ret_done, reterr));
	return *ret_done ? FATHOM_OK : try_dirs(places, f, name, ret_done, reterr);
}

/* Asks the stores for an index. */
static fathom_err try_stores(const struct fathom_build_places *places,
			     struct fathom_module_files *f, struct fathom_target **ret,
			     struct fathom_errinfo *reterr)
{
	const struct fathom_bytes id = { f->module->build_id, f->module->build_id_size };

	return fathom_store_list_find(&places->stores, places->paths, id, places->needs_file, ret,
				      &f->reason, reterr);
}

/*
 * Puts the index of *@t, a file that was found, into the first store, and goes on with what is
 * there then. If that fails, nothing is lost but time.
 */
static void put(const struct fathom_build_places *places, struct fathom_module_files *f,
		struct fathom_target **t, struct fathom_build_found *found)
{
	struct fathom_container_header h;
	struct fathom_target *stored = NULL;

	if (!fathom_store_add(places->stores.items[0], *t, &h, &found->was_put, NULL) &&
	    !try_stores(places, f, &stored, NULL) && stored) {
		fathom_target_release(*t);
		*t = stored;
		found->is_stored = true;
	}
}

/* Asks the servers for the debug file. */
static fathom_err ask_servers(struct fathom_module_files *f, bool *ret_done,
			      struct fathom_errinfo *reterr)
{
	const struct fathom_bytes id = { f->module->build_id, f->module->build_id_size };
	char *path;
	fathom_err err = fathom_debuginfod_find(f->session, id, &path, reterr);

	if (!err) {
		err = fathom_module_files_try_path(f, path, ret_done, reterr);
		free(path);
	} else if (err == FATHOM_E_TIMEOUT && f->reason <= FATHOM_REASON_NONE) {
		f->reason = FATHOM_REASON_TIMEOUT;
	}
	return fathom_module_files_is_fatal(err) ? err : FATHOM_OK;
}

/*
 * Asks the servers, if the session has any, when no other process of this host does: who waited may
 * find in the store, or in debuginfod's cache, what the other one has fetched.
 */
static fathom_err try_servers(const struct fathom_build_places *places,
			      struct fathom_module_files *f, bool *ret_done,
			      struct fathom_build_found *found, struct fathom_errinfo *reterr)
{
	struct fathom_target **t = f->data;
	struct fathom_download_turn turn;
	fathom_err err = FATHOM_OK;

	if (!(f->session->flags & FATHOM_DEBUGINFOD))
		return FATHOM_OK;
	FATHOM_TRY(fathom_download_turn_begin(f->session, &turn, reterr));
	if (turn.has_waited)
		err = try_stores(places, f, t, reterr);
	found->is_stored = *t != NULL;
	if (!err && !*t)
		err = ask_servers(f, ret_done, reterr);
	if (!err && *t && !found->is_stored && places->puts)
		put(places, f, t, found);
	fathom_download_turn_end(&turn);
	return err;
}

static fathom_err search(const struct fathom_build_places *places, struct fathom_module_files *f,
			 struct fathom_build_found *found, struct fathom_errinfo *reterr)
{
	struct fathom_target **t = f->data;
	bool done = false;

	if (!f->takes_any)
		FATHOM_TRY(try_stores(places, f, t, reterr));
	found->is_stored = *t != NULL;
	if (*t)
		return FATHOM_OK;
	if (!f->takes_any)
		FATHOM_TRY(fathom_module_files_try_id(f, "", &done, reterr));
	if (!done)
		FATHOM_TRY(try_module(places, f, &done, reterr));
	if (!done && !f->takes_any)
		FATHOM_TRY(fathom_module_files_try_id(f, ".debug", &done, reterr));
	if (done && places->puts && !f->takes_any)
		put(places, f, t, found);
	return done || f->takes_any ? FATHOM_OK : try_servers(places, f, &done, found, reterr);
}

fathom_err fathom_build_search(const struct fathom_build_places *places,
			       const struct fathom_build *build, struct fathom_target **ret_target,
			       enum fathom_reason *ret_reason, struct fathom_build_found *ret_found,
			       struct fathom_errinfo *reterr)
{
	const struct fathom_profile_module module = { .path = build->module ? build->module : "",
						      .build_id = build->build_id,
						      .build_id_size = build->build_id_size };
	struct fathom_target *t = NULL;
	struct fathom_module_files files = {
		.session = places->session,
		.module = &module,
		.sysroot = *places->paths->sysroot ? places->paths->sysroot : NULL,
		.debug_dirs = (const char *const *)places->paths->debug_dirs,
		.takes_any = !build->build_id_size,
		.use = keep,
		.data = &t,
	};

	*ret_found = (struct fathom_build_found){ .is_stored = false };
	FATHOM_TRY(search(places, &files, ret_found, reterr));
	*ret_target = t;
	*ret_reason = t ? FATHOM_REASON_NONE : files.reason ? files.reason : FATHOM_REASON_NO_FILE;
	return FATHOM_OK;
}
