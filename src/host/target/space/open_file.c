/* SPDX-License-Identifier: MIT */
/* Opens files as targets: detects an ELF file, a core or a snapshot from the first bytes. */
#include "host/base/progress.h"
#include "host/target/elf_file.h"
#include "host/target/space/core.h"
#include "host/target/space/snapshot_read.h"
#include "host/target/space/stored.h"

static fathom_err open_file(struct fathom_search_paths *paths, const char *path,
			    struct fathom_target **ret, struct fathom_errinfo *reterr)
{
	struct fathom_file *file;

	FATHOM_TRY(fathom_file_open(&paths->session->memory, path, &file, reterr));
	if (fathom_core_file_is(file->bytes) || fathom_snapshot_file_is(file->bytes))
		return fathom_stored_open(paths, file, ret, reterr);
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
