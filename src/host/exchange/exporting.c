/* SPDX-License-Identifier: MIT */
#include "host/exchange/exporting.h"

#include <errno.h>
#include <string.h>

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

const char *fathom_export_reason(const struct fathom_profile *profile,
				 const struct fathom_profile_sample *s)
{
	const struct fathom_profile_location *l =
		s->node ? &profile->locations[profile->nodes[s->node].location] : NULL;

	if (l && l->module != UINT32_MAX && l->answer->symbol &&
	    profile->modules[l->module].kind == FATHOM_PROFILE_MODULE_WAITS)
		return l->answer->symbol;
	return s->part == FATHOM_PROFILE_RUNNABLE ? "[waits for a processor]"
						  : "[reason not known]";
}

fathom_err fathom_export_end(struct fathom_trace_writer *w, struct fathom_errinfo *reterr)
{
	if (!w->no_memory)
		(void)fathom_trace_writer_tell(w);
	fathom_array_free(&w->out);
	if (w->no_memory)
		return fathom_fail_memory(reterr);
	return w->has_failed ? fathom_export_fail_write(reterr) : FATHOM_OK;
}

/* The writer of each enum fathom_profile_format. */
static fathom_err (*const writers[])(const struct fathom_export *, struct fathom_errinfo *) = {
	[FATHOM_PROFILE_COLLAPSED] = fathom_export_collapsed,
	[FATHOM_PROFILE_PPROF] = fathom_export_pprof,
	[FATHOM_PROFILE_SPEEDSCOPE] = fathom_export_speedscope,
	[FATHOM_PROFILE_FIREFOX] = fathom_export_firefox,
	[FATHOM_PROFILE_PERFETTO] = fathom_export_perfetto,
	[FATHOM_PROFILE_SVG] = fathom_export_svg,
	[FATHOM_PROFILE_SVG_BARS] = fathom_export_svg_bars,
	[FATHOM_PROFILE_PAGE] = fathom_export_page,
};

/* Exports @e, whose options are copied from @options, in @format. */
static fathom_err export_by(struct fathom_export *e, enum fathom_profile_format format,
			    const struct fathom_report_options *options,
			    struct fathom_errinfo *reterr)
{
	struct fathom_report_options o = { .size = sizeof o };
	struct fathom_call call;
	fathom_err err;

	if (options && !FATHOM_STRUCT_READ(options, &o))
		return fathom_fail_options(reterr);
	if (o.key || o.shape || o.least_share || o.of || !e->write)
		return fathom_fail_options(reterr);
	FATHOM_TRY(fathom_report_check_time(e->profile, o.time, reterr));
	if ((uint32_t)format >= sizeof writers / sizeof *writers || !writers[format])
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0, "no such format");
	e->options = &o;
	fathom_call_begin(&call, e->profile->session);
	err = writers[format](e, reterr);
	return fathom_call_end(&call, err, reterr);
}

fathom_err fathom_profile_export(const struct fathom_profile *profile,
				 enum fathom_profile_format format,
				 const struct fathom_report_options *options,
				 fathom_profile_write_fn write, void *data,
				 struct fathom_errinfo *reterr)
{
	struct fathom_export e = { .profile = profile, .write = write, .data = data };

	return export_by(&e, format, options, reterr);
}

fathom_err fathom_diff_export(const struct fathom_profile *a, const struct fathom_profile *b,
			      enum fathom_profile_format format,
			      const struct fathom_report_options *options,
			      fathom_profile_write_fn write, void *data,
			      struct fathom_errinfo *reterr)
{
	struct fathom_export e = { .profile = a, .other = b, .write = write, .data = data };

	if (format != FATHOM_PROFILE_PAGE)
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				   "a page is the only format that compares profiles");
	if (strcmp(a->info.unit, b->info.unit) != 0)
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				   "the profiles have weights of different units");
	return export_by(&e, format, options, reterr);
}
