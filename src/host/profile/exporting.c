/* SPDX-License-Identifier: MIT */
#include "host/profile/exporting.h"

#include <errno.h>

#include "host/base/option_struct.h"
#include "host/base/progress.h"
#include "host/profile/report_leaves.h"
#include "safe/base/error.h"

fathom_err fathom_export_fail_write(struct fathom_errinfo *reterr)
{
	const int number = errno;

	(void)fathom_fail(reterr, FATHOM_E_OS, "", 0, "the export cannot be written");
	if (reterr)
		reterr->os_errno = number;
	return FATHOM_E_OS;
}

fathom_err fathom_profile_export(const struct fathom_profile *profile,
				 enum fathom_profile_format format,
				 const struct fathom_report_options *options,
				 fathom_profile_write_fn write, void *data,
				 struct fathom_errinfo *reterr)
{
	struct fathom_report_options o = { .size = sizeof o };
	const struct fathom_export e = { profile, &o, write, data };
	struct fathom_call call;
	fathom_err err;

	if (options && !FATHOM_STRUCT_READ(options, &o))
		return fathom_fail_options(reterr);
	if (o.key || o.shape || o.least_share || o.of || !write)
		return fathom_fail_options(reterr);
	FATHOM_TRY(fathom_report_check_time(profile, o.time, reterr));
	if (format != FATHOM_PROFILE_COLLAPSED && format != FATHOM_PROFILE_PPROF)
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0, "no such format");
	fathom_call_begin(&call, profile->session);
	err = format == FATHOM_PROFILE_PPROF ? fathom_export_pprof(&e, reterr)
					     : fathom_export_collapsed(&e, reterr);
	return fathom_call_end(&call, err, reterr);
}
