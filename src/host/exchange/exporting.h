/* SPDX-License-Identifier: MIT */
/* Profiles in the formats of other programs. */
#ifndef FATHOM_EXCHANGE_EXPORTING_H
#define FATHOM_EXCHANGE_EXPORTING_H

#include "host/events/writer.h"
#include "host/profile/in_memory.h"

struct fathom_export {
	const struct fathom_profile *profile;
	const struct fathom_profile *other;          /* that it is compared with; NULL: none */
	const struct fathom_report_options *options; /* the filters */
	fathom_profile_write_fn write;
	void *data; /* of write */
};

fathom_err fathom_export_collapsed(const struct fathom_export *e, struct fathom_errinfo *reterr);
fathom_err fathom_export_speedscope(const struct fathom_export *e, struct fathom_errinfo *reterr);
fathom_err fathom_export_firefox(const struct fathom_export *e, struct fathom_errinfo *reterr);
fathom_err fathom_export_svg(const struct fathom_export *e, struct fathom_errinfo *reterr);
fathom_err fathom_export_svg_bars(const struct fathom_export *e, struct fathom_errinfo *reterr);
/* FATHOM_E_UNSUPPORTED in a build without nanopb. */
fathom_err fathom_export_pprof(const struct fathom_export *e, struct fathom_errinfo *reterr);
fathom_err fathom_export_perfetto(const struct fathom_export *e, struct fathom_errinfo *reterr);

/* Returns what the thread waited for in @s, a wait. */
const char *fathom_export_reason(const struct fathom_profile *profile,
				 const struct fathom_profile_sample *s);

/* Returns a writer for @e, of which only what it collects and passes on is used. */
static inline struct fathom_trace_writer fathom_export_writer(const struct fathom_export *e)
{
	return (struct fathom_trace_writer){ .write = e->write, .data = e->data };
}

/* Passes on what @w has collected, unless it has failed, and frees it. Returns its error. */
fathom_err fathom_export_end(struct fathom_trace_writer *w, struct fathom_errinfo *reterr);
/* In host/page. */
fathom_err fathom_export_page(const struct fathom_export *e, struct fathom_errinfo *reterr);

/* Fails because a write did; errno says why. */
fathom_err fathom_export_fail_write(struct fathom_errinfo *reterr);

#endif
