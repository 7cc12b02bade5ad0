/* SPDX-License-Identifier: MIT */
/* fathom report --annotate: functions of a profile, instruction by instruction. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/common.h"
#include "cli/report_annotate.h"

static int complain_annotation(const char *path, const struct fathom_annotation_options *o,
			       const struct fathom_errinfo *info)
{
	if (info->err == FATHOM_E_NOT_FOUND)
		complain(o->query, info->what, "'fathom report' lists its functions");
	else if (info->err == FATHOM_E_OS)
		complain_error(info);
	else if (info->err == FATHOM_E_ARGUMENT || info->err == FATHOM_E_UNSUPPORTED)
		complain("report", info->what, NULL);
	else
		complain(path, info->what, common_cause_remedy(info->cause));
	return info->err == FATHOM_E_NOT_FOUND ? EXIT_UNANSWERED : EXIT_USAGE;
}

/* Says which functions are not printed. */
static void say_left_out(const struct fathom_annotation *a, struct out *o)
{
	const size_t n = fathom_annotation_left_out(a);
	char text[96];

	if (!n)
		return;
	(void)snprintf(text, sizeof text, "\n[%zu other function%s: see --top]\n", n,
		       n == 1 ? "" : "s");
	out_str(o, text);
}

int report_annotate(const struct annotate_print *p, struct fathom_annotation_options *o,
		    const char *path, bool json, struct out *out)
{
	struct annotate_print print = *p;
	struct fathom_annotation *a;
	struct fathom_errinfo info;
	const struct fathom_annotated_function *functions;
	size_t n;

	o->limit = p->print->top < UINT32_MAX ? (uint32_t)p->print->top : UINT32_MAX;
	if (fathom_annotation_create(p->print->profile, o, &a, &info))
		return complain_annotation(path, o, &info);
	print.sums = fathom_annotation_get_sums(a);
	functions = fathom_annotation_functions(a, &n);
	for (size_t i = 0; i < n && !out->failed; i++)
		if (json)
			annotate_json(out, i, &functions[i]);
		else
			annotate_text(&print, out, i, &functions[i]);
	if (!json)
		say_left_out(a, out);
	out_flush(out);
	if (!n)
		complain(path, "the functions have no samples of what was asked for", NULL);
	fathom_annotation_free(a);
	return common_status(out, !n);
}
