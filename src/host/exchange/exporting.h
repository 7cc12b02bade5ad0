/* SPDX-License-Identifier: MIT */
/* Profiles in the formats of other programs. */
#ifndef FATHOM_EXCHANGE_EXPORTING_H
#define FATHOM_EXCHANGE_EXPORTING_H

#include "host/profile/in_memory.h"

struct fathom_export {
	const struct fathom_profile *profile;
	const struct fathom_report_options *options; /* the filters */
	fathom_profile_write_fn write;
	void *data; /* of write */
};

fathom_err fathom_export_collapsed(const struct fathom_export *e, struct fathom_errinfo *reterr);
/* FATHOM_E_UNSUPPORTED in a build without nanopb. */
fathom_err fathom_export_pprof(const struct fathom_export *e, struct fathom_errinfo *reterr);

/* Fails because a write did; errno says why. */
fathom_err fathom_export_fail_write(struct fathom_errinfo *reterr);

#endif
