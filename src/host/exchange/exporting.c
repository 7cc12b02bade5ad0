/* SPDX-License-Identifier: MIT */
#include "host/exchange/exporting.h"

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
};

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
	if ((uint32_t)format >= sizeof writers / sizeof *writers || !writers[format])
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0, "no such format");
	fathom_call_begin(&call, profile->session);
	err = writers[format](&e, reterr);
	return fathom_call_end(&call, err, reterr);
}
