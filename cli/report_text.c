/* SPDX-License-Identifier: MIT */
/* Reports of profiles as text. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/common.h"
#include "cli/print.h"
#include "cli/report_print.h"

/* The modules without names that are named. */
#define NAMELESS_TOLD 10

struct report_nameless *report_find_nameless(const struct fathom_profile *profile, size_t *ret_n)
{
	size_t n_locations;
	const struct fathom_profile_module *modules = fathom_profile_modules(profile, ret_n);
	const struct fathom_profile_location *locations =
		fathom_profile_locations(profile, &n_locations);
	struct report_nameless *all = must(calloc(*ret_n + 1, sizeof *all));

	for (size_t i = 0; i < *ret_n; i++)
		all[i].module = &modules[i];
	for (size_t i = 0; i < n_locations; i++) {
		const struct fathom_answer *a = locations[i].answer;

		if (locations[i].module != UINT32_MAX && !a->symbol &&
		    a->reason != FATHOM_REASON_NO_SYMBOLS)
			all[locations[i].module].reason = a->reason;
	}
	return all;
}

const char *report_weight_text(double value, const char *unit, char to[32])
{
	static const char *const times[] = { "ns", "us", "ms", "s" };
	static const char *const counts[] = { "", "k", "M", "G", "T", "P", "E" };
	const bool is_time = strcmp(unit, "ns") == 0;
	const char *const *units = is_time ? times : counts;
	const size_t most = (is_time ? sizeof times : sizeof counts) / sizeof *times - 1;
	size_t i = 0;

	for (; value >= 999.95 && i < most; i++)
		value /= 1000;
	(void)snprintf(to, 32, "%.*f%s%s",
		       i == 0           ? 0
		       : value < 9.9995 ? 3
		       : value < 99.995 ? 2
					: 1,
		       value, *units[i] ? " " : "", units[i]);
	return to;
}

static const char *weight_text(const struct report_print *p, uint64_t value, char to[32])
{
	return report_weight_text((double)value, p->unit, to);
}

static double percent_of(uint64_t part, uint64_t whole)
{
	return whole ? 100. * (double)part / (double)whole : 0;
}

void report_text_line(struct out *o, const char *name, const char *format, ...)
{
	char *text = NULL;
	char key[32];
	va_list arguments;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	va_end(arguments);
	must(text);
	(void)snprintf(key, sizeof key, "%-11s", name);
	out_str(o, key);
	out_text(o, text, strlen(text));
	out_char(o, '\n');
	free(text);
}

static void print_when(const struct report_print *p, struct out *o)
{
	const struct fathom_profile_info *info = p->info;
	const time_t seconds = (time_t)(info->started / 1000000000);
	char when[64] = "";
	struct tm tm;

	if (info->started && gmtime_r(&seconds, &tm))
		(void)strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S UTC, ", &tm);
	report_text_line(o, "recorded:", "%sfor %.3f s%s%s%s%s%s%s", when,
			 (double)info->duration_ns / 1e9, *info->host ? ", on " : "", info->host,
			 *info->kernel ? ", Linux " : "", info->kernel, *info->machine ? ", " : "",
			 info->machine);
}

static void print_samples(const struct report_print *p, struct out *o,
			  const struct fathom_report_sums *s)
{
	const char *name = p->time == FATHOM_REPORT_WAITING ? "waits:" : "samples:";
	char weight[32];
	char ready[32];

	if (s->n_stacks && p->info->has_unknown_ends)
		report_text_line(o, name,
				 "%" PRIu64 " of %s; the file does not say which stacks are whole",
				 s->n_samples, weight_text(p, s->weight, weight));
	else if (s->n_stacks)
		report_text_line(o, name, "%" PRIu64 " of %s, %.1f %% of the stacks are whole",
				 s->n_samples, weight_text(p, s->weight, weight),
				 percent_of(s->n_whole, s->n_stacks));
	else
		report_text_line(o, name, "%" PRIu64 " of %s, none with a stack", s->n_samples,
				 weight_text(p, s->weight, weight));
	if (s->shown != s->weight)
		report_text_line(o, "shown:", "%s, %.2f %%", weight_text(p, s->shown, weight),
				 percent_of(s->shown, s->weight));
	if (s->hidden)
		report_text_line(
			o, "hidden:", "%s, %.2f %%, in the kernel, whose stacks were not permitted",
			weight_text(p, s->hidden, weight), percent_of(s->hidden, s->weight));
	else if (p->info->is_kernel_hidden)
		report_text_line(o, "hidden:", "the kernel's stacks were not permitted");
	if (s->unsampled)
		report_text_line(o, "unsampled:", "%s, %.2f %%, were counted without a sample",
				 weight_text(p, s->unsampled, weight),
				 percent_of(s->unsampled, s->weight));
	if (p->info->n_waits && !p->time)
		report_text_line(
			o, "waiting:", "%s of all threads, and %s for a processor (--time=waiting)",
			report_weight_text((double)p->info->waiting_ns, "ns", weight),
			report_weight_text((double)p->info->runnable_ns, "ns", ready));
	if (p->info->lost)
		report_text_line(o, "lost:", "%" PRIu64 " samples", p->info->lost);
	if (p->info->throttled)
		report_text_line(o, "throttled:", "%" PRIu64 " time%s by the kernel",
				 p->info->throttled, p->info->throttled == 1 ? "" : "s");
	if (!p->info->is_complete)
		report_text_line(o, "cut short:", "the file ends before the recording did");
}

/* Prints the files that name nothing. */
static void print_nameless(const struct report_print *p, struct out *o)
{
	size_t n;
	struct report_nameless *all = report_find_nameless(p->profile, &n);
	size_t told = 0;

	for (size_t i = 0; i < n; i++)
		if (all[i].reason && ++told <= NAMELESS_TOLD)
			report_text_line(o, "no names:", "%s (%s)", all[i].module->path,
					 fathom_reason_name((enum fathom_reason)all[i].reason));
	if (told > NAMELESS_TOLD)
		report_text_line(o, "no names:", "and %zu others", told - NAMELESS_TOLD);
	free(all);
}

void report_text_header(const struct report_print *p, struct out *o, const struct fathom_report *r)
{
	const struct fathom_profile_info *info = p->info;
	const bool is_time = strcmp(info->unit, "ns") == 0;
	const double seconds = is_time ? (double)info->weight / 1e9 : 0;

	if (*info->command)
		report_text_line(o, "command:", "%s", info->command);
	print_when(p, o);
	if (!info->frequency && *info->event)
		report_text_line(o, "event:", "%s", info->event);
	else if (seconds > 0)
		report_text_line(o, "event:", "%s at %u Hz, %.0f Hz were reached", info->event,
				 info->frequency, (double)info->n_samples / seconds);
	else if (*info->event)
		report_text_line(o, "event:", "%s at %u Hz", info->event, info->frequency);
	if (*info->method)
		report_text_line(o, "method:", "%s", info->method);
	print_samples(p, o, fathom_report_get_sums(r));
	print_nameless(p, o);
}

static void print_module(struct out *o, const char *module)
{
	const char *name = last_part(module);

	out_str(o, "  ");
	out_text(o, name, strlen(name));
}

/* Prints what a row is: its name, where it is, and its module. */
static void print_row(const struct report_print *p, struct out *o,
		      const struct fathom_report_row *row)
{
	const bool is_module =
		row->kind == FATHOM_REPORT_ROW_CODE && p->key == FATHOM_REPORT_BY_MODULE;
	char text[32];

	print_symbol(o, row->name, strlen(row->name));
	if (row->pid) {
		(void)snprintf(text, sizeof text, " (%" PRId32 ")", row->tid ? row->tid : row->pid);
		out_str(o, text);
	}
	if (row->file) {
		out_char(o, ' ');
		out_begin_part(o, OUT_FILE);
		out_text(o, row->file, strlen(row->file));
		if (row->line) {
			out_char(o, ':');
			out_dec(o, row->line);
		}
		out_end_part(o);
	}
	if (row->module && !is_module)
		print_module(o, row->module);
}

void report_text_name(struct out *o, const char *name, const char *module)
{
	print_symbol(o, name, strlen(name));
	if (!module)
		return;
	out_str(o, "  ");
	out_text(o, module, strlen(module));
}

/* Prints a weight and what part it is of all. */
static void print_weight(const struct report_print *p, struct out *o, uint64_t weight, uint64_t all)
{
	char text[32];
	char both[64];

	(void)snprintf(both, sizeof both, "%9s %6.2f", weight_text(p, weight, text),
		       percent_of(weight, all));
	out_str(o, both);
}

void report_text_rows(const struct report_print *p, struct out *o, const struct fathom_report *r)
{
	const uint64_t all = fathom_report_get_sums(r)->weight;
	size_t n;
	const struct fathom_report_row *rows = fathom_report_rows(r, &n);
	const size_t shown = n < p->top ? n : p->top;
	uint64_t left = 0;

	out_str(o, "\n     self      %     total      %  ");
	out_str(o, report_key_words[p->key]);
	out_char(o, '\n');
	for (size_t i = 0; i < shown; i++) {
		print_weight(p, o, rows[i].self, all);
		out_char(o, ' ');
		print_weight(p, o, rows[i].total, all);
		out_str(o, "  ");
		print_row(p, o, &rows[i]);
		out_char(o, '\n');
	}
	for (size_t i = shown; i < n; i++)
		left += rows[i].self;
	if (shown < n) {
		char text[64];

		print_weight(p, o, left, all);
		(void)snprintf(text, sizeof text, "%17s   [%zu others]\n", "", n - shown);
		out_str(o, text);
	}
}

/* Prints the weight of a line of the tree, and indents what follows. */
static void begin_node(const struct report_print *p, struct out *o, uint64_t weight, uint64_t all,
		       uint32_t depth)
{
	print_weight(p, o, weight, all);
	out_str(o, "  ");
	for (uint32_t i = 1; i < depth; i++)
		out_char(o, ' ');
}

/* Says what was left out below @n. */
static void print_left_out(const struct report_print *p, struct out *o,
			   const struct fathom_report_node *n, uint64_t all)
{
	char text[32];

	if (!n->n_left_out)
		return;
	begin_node(p, o, n->left_out, all, n->depth + 1);
	(void)snprintf(text, sizeof text, "[%" PRIu32 " other%s]\n", n->n_left_out,
		       n->n_left_out == 1 ? "" : "s");
	out_str(o, text);
}

void report_text_tree(const struct report_print *p, struct out *o, const struct fathom_report *r,
		      const char *title)
{
	const uint64_t all = fathom_report_get_sums(r)->weight;
	size_t n;
	const struct fathom_report_node *nodes = fathom_report_nodes(r, &n);
	size_t at = 0; /* node whose branches are being printed */

	out_str(o, "\n    total      %  ");
	out_text(o, title, strlen(title));
	out_char(o, '\n');
	for (size_t i = 1; i < n; i++) {
		for (; at != nodes[i].parent; at = nodes[at].parent)
			print_left_out(p, o, &nodes[at], all);
		begin_node(p, o, nodes[i].total, all, nodes[i].depth);
		print_row(p, o, nodes[i].row);
		out_char(o, '\n');
		at = i;
	}
	for (; at; at = nodes[at].parent)
		print_left_out(p, o, &nodes[at], all);
	print_left_out(p, o, &nodes[0], all);
}
