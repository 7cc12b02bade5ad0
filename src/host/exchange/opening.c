/* SPDX-License-Identifier: MIT */
/* Opens profiles. */
#include "host/base/progress.h"
#include "host/profile/in_memory.h"
#include "safe/base/error.h"

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
	err = fathom_file_open_cut(&session->memory, path, &file, reterr);
	if (!err)
		err = fathom_profile_read(session, file, &p, reterr);
	err = fathom_call_end(&call, err, reterr);
	if (err)
		fathom_profile_free(p);
	else
		*ret_profile = p;
	return err;
}
