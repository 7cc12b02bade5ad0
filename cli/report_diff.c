/* SPDX-License-Identifier: MIT */
/* Comparisons of profiles, as text and as JSON Lines. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common.h"
#include "cli/json.h"
#include "cli/report_print.h"

/* Reads a number from 1 on; returns where it ends, NULL if it is none. */
static const char *read_count(const char *text, uint64_t *ret)
{
	char *end;

	if (*text < '0' || *text > '9' || strlen(text) > 38)
		return NULL;
	*ret = strtoull(text, &end, 10);
	return *ret && *ret < UINT64_MAX ? end : NULL;
}

void report_diff_parse_per(struct fathom_diff_options *o, const char *text)
{
	const char *end;

	o->per = strcmp(text, "wall") == 0 ? FATHOM_DIFF_PER_WALL : FATHOM_DIFF_PER_CPU;
	if (strcmp(text, "wall") == 0 || strcmp(text, "cpu") == 0)
		return;
	o->per = FATHOM_DIFF_PER_COUNT;
	end = read_count(text, &o->counts[0]);
	o->counts[1] = o->counts[0];
	if (end && *end == ',')
		end = read_count(end + 1, &o->counts[1]);
	if (end && !*end)
		return;
	complain("--per", "is cpu, wall, or how much work both have done, as in 500 or 500,800",
		 NULL);
	exit(EXIT_USAGE);
}

/* Writes @value as the columns show it, with its sign if @is_change. */
static const char *value_text(const struct report_diff *d, double value, bool is_change,
			      char to[48])
{
	char text[32];

	if (d->options.per == FATHOM_DIFF_PER_CPU) {
		(void)snprintf(to, 48, is_change ? "%+.2f" : "%.2f", 100 * value);
		return to;
	}
	(void)report_weight_text(value < 0 ? -value : value, d->print->unit, text);
	(void)snprintf(to, 48, "%s%s", value < 0 ? "-" : is_change ? "+" : "", text);
	return to;
}

/* Returns the words for a change that was tested. */
static const char *verdict_text(const struct fathom_diff_row *row)
{
	return row->verdict == FATHOM_DIFF_SLOWER   ? "slower"
	       : row->verdict == FATHOM_DIFF_FASTER ? "faster"
						    : "no significant change";
}

/* Prints what the columns of values are. */
static void print_units(const struct report_diff *d, struct out *o)
{
	char text[128];

	switch (d->options.per) {
	case FATHOM_DIFF_PER_WALL:
		out_str(o, "values:    for each second of the recording\n");
		break;
	case FATHOM_DIFF_PER_COUNT:
		(void)snprintf(text, sizeof text,
			       "values:    divided by %" PRIu64 " and %" PRIu64 "\n",
			       d->options.counts[0], d->options.counts[1]);
		out_str(o, text);
		break;
	default:
		out_str(o, "values:    percent of all weight\n");
	}
}

/* Prints one of the profiles. */
static void print_side(const struct report_diff *d, struct out *o,
		       const struct fathom_diff_sums *sums, int side)
{
	const struct fathom_profile_info *info = fathom_profile_get_info(d->profiles[side]);
	char weight[32];
	char text[128];

	out_str(o, side ? "B:         " : "A:         ");
	out_text(o, d->paths[side], strlen(d->paths[side]));
	(void)snprintf(text, sizeof text, ": %" PRIu64 " %s of %s", sums->n_samples[side],
		       d->print->time == FATHOM_REPORT_WAITING ? "waits" : "samples",
		       report_weight_text((double)sums->weight[side], d->print->unit, weight));
	out_str(o, text);
	if (info->lost) {
		(void)snprintf(text, sizeof text, ", %" PRIu64 " lost", info->lost);
		out_str(o, text);
	}
	out_str(o, info->is_complete ? "\n" : ", cut short\n");
}

static void print_result(const struct report_diff *d, struct out *o,
			 const struct fathom_diff_sums *sums, size_t n)
{
	char text[160];

	if (d->print->time)
		(void)snprintf(text, sizeof text,
			       "result:    %zu functions and reasons, not tested: there are waits "
			       "among them, which are no samples\n",
			       n);
	else if (sums->n_slower || sums->n_faster)
		(void)snprintf(
			text, sizeof text,
			"result:    of %zu functions %" PRIu64 " %s slower, %" PRIu64 " faster\n",
			n, sums->n_slower, sums->n_slower == 1 ? "is" : "are", sums->n_faster);
	else
		(void)snprintf(text, sizeof text,
			       "result:    no significant change of %zu functions\n", n);
	out_str(o, text);
}

static void print_row(const struct report_diff *d, struct out *o, const struct fathom_diff_row *row)
{
	char values[5][48];
	char text[320];

	(void)snprintf(text, sizeof text, "%10s %10s %11s  ",
		       value_text(d, row->values[0], false, values[0]),
		       value_text(d, row->values[1], false, values[1]),
		       value_text(d, row->change, true, values[2]));
	out_str(o, text);
	if (row->verdict != FATHOM_DIFF_NOT_TESTED) {
		(void)snprintf(text, sizeof text, "[%11s, %11s]  %-21s  ",
			       value_text(d, row->low, true, values[3]),
			       value_text(d, row->high, true, values[4]), verdict_text(row));
		out_str(o, text);
	}
	report_text_name(o, row->name, row->module);
	out_char(o, '\n');
}

static void print_text(const struct report_diff *d, struct out *o, const struct fathom_diff *diff)
{
	const struct fathom_diff_sums *sums = fathom_diff_get_sums(diff);
	size_t n;
	const struct fathom_diff_row *rows = fathom_diff_rows(diff, &n);
	const size_t shown = n < d->print->top ? n : d->print->top;
	char text[96];

	print_side(d, o, sums, 0);
	print_side(d, o, sums, 1);
	print_units(d, o);
	print_result(d, o, sums, n);
	(void)snprintf(text, sizeof text, "\n%10s %10s %11s  ", "self A", "self B", "change");
	out_str(o, text);
	if (!d->print->time) {
		(void)snprintf(text, sizeof text, "%-26s  %-21s  ", "95 % interval", "");
		out_str(o, text);
	}
	out_str(o, "function\n");
	for (size_t i = 0; i < shown; i++)
		print_row(d, o, &rows[i]);
	if (shown == n)
		return;
	(void)snprintf(text, sizeof text, "[%zu others]\n", n - shown);
	out_str(o, text);
}

static void member_pair(struct out *o, const char *key, const uint64_t values[2])
{
	out_char(o, ',');
	json_key(o, key);
	out_char(o, '[');
	out_dec(o, values[0]);
	out_char(o, ',');
	out_dec(o, values[1]);
	out_char(o, ']');
}

/* Writes @value, which is finite. */
static void out_real(struct out *o, double value)
{
	char text[32];

	(void)snprintf(text, sizeof text, "%.9g", value);
	out_str(o, text);
}

static void member_reals(struct out *o, const char *key, const double *values, size_t n)
{
	out_char(o, ',');
	json_key(o, key);
	for (size_t i = 0; i < n; i++) {
		out_str(o, i ? "," : n > 1 ? "[" : "");
		out_real(o, values[i]);
	}
	out_str(o, n > 1 ? "]" : "");
}

static void print_json_header(const struct report_diff *d, struct out *o,
			      const struct fathom_diff_sums *sums)
{
	static const char *const per[] = { [FATHOM_DIFF_PER_CPU] = "cpu",
					   [FATHOM_DIFF_PER_WALL] = "wall",
					   [FATHOM_DIFF_PER_COUNT] = "count" };
	uint64_t lost[2];
	bool complete[2];

	for (int side = 0; side < 2; side++) {
		lost[side] = fathom_profile_get_info(d->profiles[side])->lost;
		complete[side] = fathom_profile_get_info(d->profiles[side])->is_complete;
	}
	out_str(o, "{");
	json_string(o, "type", "diff");
	json_member_string(o, "a", d->paths[0]);
	json_member_string(o, "b", d->paths[1]);
	json_member_string(o, "time", report_time_words[d->print->time]);
	json_member_string(o, "unit", d->print->unit);
	json_member_string(o, "per", per[d->options.per]);
	member_pair(o, "weight", sums->weight);
	member_pair(o, "samples", sums->n_samples);
	member_reals(o, "effective", sums->effective, 2);
	member_reals(o, "divisors", sums->divisors, 2);
	member_pair(o, "lost", lost);
	out_char(o, ',');
	json_key(o, "complete");
	out_str(o, complete[0] ? "[true," : "[false,");
	out_str(o, complete[1] ? "true]" : "false]");
	out_char(o, ',');
	json_key(o, "slower");
	out_dec(o, sums->n_slower);
	out_char(o, ',');
	json_key(o, "faster");
	out_dec(o, sums->n_faster);
	out_str(o, "}\n");
}

static void print_json_row(struct out *o, const struct fathom_diff_row *row)
{
	static const char *const kinds[] = {
		[FATHOM_REPORT_ROW_CODE] = "function",
		[FATHOM_REPORT_ROW_KERNEL_HIDDEN] = "kernel-hidden",
		[FATHOM_REPORT_ROW_UNSAMPLED] = "unsampled",
		[FATHOM_REPORT_ROW_INCOMPLETE] = "incomplete",
	};
	const double interval[2] = { row->low, row->high };
	const bool is_tested = row->verdict != FATHOM_DIFF_NOT_TESTED;
	const bool is_unknown = row->kind == FATHOM_REPORT_ROW_CODE && !strcmp(row->name, "??");

	out_str(o, "{");
	json_string(o, "type", "change");
	json_member_string(o, "kind", kinds[row->kind]);
	json_member_string(o, "name", is_unknown ? NULL : row->name);
	json_member_string(o, "linkage_name", row->linkage_name);
	json_member_string(o, "module", row->module);
	json_member_string(o, "verdict",
			   !is_tested                                    ? "not-tested"
			   : row->verdict == FATHOM_DIFF_NOT_SIGNIFICANT ? "not-significant"
									 : verdict_text(row));
	member_pair(o, "self", row->self);
	member_pair(o, "self_samples", row->self_samples);
	member_reals(o, "values", row->values, 2);
	member_reals(o, "change", &row->change, 1);
	if (is_tested) {
		member_reals(o, "interval", interval, 2);
		member_reals(o, "chance", &row->chance, 1);
	}
	out_str(o, is_tested ? "}\n" : ",\"interval\":null,\"chance\":null}\n");
}

static void print_json(const struct report_diff *d, struct out *o, const struct fathom_diff *diff)
{
	size_t n;
	const struct fathom_diff_row *rows = fathom_diff_rows(diff, &n);

	print_json_header(d, o, fathom_diff_get_sums(diff));
	for (size_t i = 0; i < n && i < d->print->top; i++)
		print_json_row(o, &rows[i]);
}

int report_diff(const struct report_diff *d, struct out *o)
{
	struct fathom_diff *diff = NULL;
	struct fathom_errinfo info;
	size_t n;

	if (fathom_diff_create(d->profiles[0], d->profiles[1], &d->options, &diff, &info)) {
		complain("--diff", info.what, common_cause_remedy(info.cause));
		return info.err == FATHOM_E_NOT_FOUND ? EXIT_UNANSWERED : EXIT_USAGE;
	}
	if (d->json)
		print_json(d, o, diff);
	else
		print_text(d, o, diff);
	out_flush(o);
	(void)fathom_diff_rows(diff, &n);
	fathom_diff_free(diff);
	return common_status(o, n == 0);
}
