/* SPDX-License-Identifier: MIT */
/* Opens profiles: fathom's own, and those of other programs, which are converted first. */
#include <string.h>

#include "host/base/progress.h"
#include "host/exchange/importing.h"
#include "host/exchange/perf_directory.h"
#include "host/profile/in_memory.h"
#include "host/profile/samples_format.h"
#include "safe/base/error.h"

/* Returns whether @b are of a profile of fathom, of whichever version. */
static bool is_own(struct fathom_bytes b)
{
	static const char magic[] = FATHOM_PROFILE_MAGIC;
	const size_t version = FATHOM_PROFILE_MAGIC_SIZE - 2;

	return b.size >= FATHOM_PROFILE_MAGIC_SIZE && !memcmp(b.data, magic, version);
}

/* Reads @file, which it takes over. */
static fathom_err read_profile(struct fathom *session, struct fathom_file *file,
			       struct fathom_profile **ret, struct fathom_errinfo *reterr)
{
	struct fathom_file *converted;
	fathom_err err;

	if (is_own(file->bytes))
		return fathom_profile_read(session, file, ret, reterr);
	err = fathom_import(session, file, &converted, reterr);
	fathom_file_close(file);
	if (err)
		return err;
	err = fathom_profile_read(session, converted, ret, reterr);
	/* It would be one in memory, and not in the file. */
	if (err && reterr)
		reterr->offset = 0;
	return err;
}

fathom_err fathom_profile_open(struct fathom *session, const char *path,
			       struct fathom_profile **ret_profile, struct fathom_errinfo *reterr)
{
	struct fathom_profile *p = NULL;
	struct fathom_file *file;
	struct fathom_call call;
	fathom_err err;

	if (!session || !path)
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0, "there is no session or path");
	fathom_call_begin(&call, session);
	err = fathom_is_perf_directory(path)
		      ? fathom_perf_directory_open(session, path, &file, reterr)
		      : fathom_file_open_cut(&session->memory, path, &file, reterr);
	if (!err)
		err = read_profile(session, file, &p, reterr);
	err = fathom_call_end(&call, err, reterr);
	if (err)
		fathom_profile_free(p);
	else
		*ret_profile = p;
	return err;
}
