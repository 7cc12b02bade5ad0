/* SPDX-License-Identifier: MIT */
/* Opens files as targets: detects an ELF file, a core or a snapshot from the first bytes. */
#include "host/base/progress.h"
#include "host/space/elf_file.h"
#include "host/space/user/core.h"
#include "host/space/user/core_reduce.h"
#include "host/space/user/snapshot_read.h"
#include "host/space/user/stored.h"

static fathom_err fail_as(const struct fathom_errinfo *why, struct fathom_errinfo *reterr)
{
	if (reterr)
		*reterr = *why;
	return why->err;
}

/* Opens a core or snapshot and adds @note to its notes, if there is one. */
static fathom_err open_stored(struct fathom_search_paths *paths, struct fathom_file *file,
			      const struct fathom_errinfo *note, struct fathom_target **ret,
			      struct fathom_errinfo *reterr)
{
	FATHOM_TRY(fathom_stored_open(paths, file, ret, reterr));
	if (note->err)
		fathom_notes_add(&(*ret)->notes, note);
	return FATHOM_OK;
}

/*
 * Opens the file at @path. A core that is compressed and does not fit the memory budget is reduced
 * to what stacks need.
 */
static fathom_err open_file(struct fathom_search_paths *paths, const char *path,
			    struct fathom_target **ret, struct fathom_errinfo *reterr)
{
	struct fathom_memory *m = &paths->session->memory;
	struct fathom_errinfo note = { .err = FATHOM_OK };
	struct fathom_errinfo why;
	struct fathom_file *file;
	fathom_err err = fathom_file_open_cut(m, path, &file, &why);

	if (err == FATHOM_E_LIMIT)
		err = fathom_core_reduce(m, path, &file, &note, &why);
	if (err)
		return fail_as(&why, reterr);
	if (fathom_core_file_is(file->bytes) ||
	    (!file->is_short && fathom_snapshot_file_is(file->bytes)))
		return open_stored(paths, file, &note, ret, reterr);
	if (file->is_short) {
		fathom_file_close(file);
		return fathom_fail_damaged(reterr, path);
	}
	return fathom_elf_file_open(paths, file, ret, reterr);
}

fathom_err fathom_target_open_file(struct fathom *session, const char *path,
				   const struct fathom_target_options *options,
				   struct fathom_target **ret_target, struct fathom_errinfo *reterr)
{
	const uint32_t cuts = fathom_mapped_cuts(&session->memory.mapped);
	struct fathom_search_paths *paths;
	struct fathom_call call;
	struct fathom_target *t = NULL;
	fathom_err err;

	FATHOM_TRY(fathom_search_paths_create(session, options, &paths, reterr));
	fathom_call_begin(&call, session);
	err = open_file(paths, path, &t, reterr);
	err = fathom_call_end(&call, err, reterr);
	fathom_search_paths_release(paths);
	/* Truncation explains any failure; the truncated file may be closed by now. */
	if (cuts != fathom_mapped_cuts(&session->memory.mapped)) {
		fathom_target_release(t);
		return fathom_fail_cut(reterr, path);
	}
	if (err)
		fathom_target_release(t);
	else
		*ret_target = t;
	return err;
}
