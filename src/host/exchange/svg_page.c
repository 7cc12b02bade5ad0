/* SPDX-License-Identifier: MIT */
#include "host/exchange/svg_page.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "safe/base/error.h"

#define TITLE_BASE    22 /* base line of the title */
#define FIRST_FACT    42 /* of the first line below it */
#define FACT_PITCH    16
#define FACT_SIZE     256
#define MOST_FACTS    7
#define LEGEND_SQUARE 11

/*
 * Tints of the palette of Okabe and Ito, which colour-blind people can tell apart: light ones below
 * dark text, dark ones below light text, each with a contrast of at least 4.5 to it.
 */
static const char style[] =
	"<style>"
	"text{font:12px \"DejaVu Sans Mono\",Menlo,Consolas,\"Liberation Mono\",monospace;"
	"fill:#1b1b1b;white-space:pre}"
	".t{font-size:15px;font-weight:bold}"
	".bg{fill:#ffffff}"
	"rect{stroke:none}"
	".b{stroke:#ffffff;stroke-width:.5}"
	".s{fill-opacity:.75}"
	".k0{fill:#f5c04f}.k1{fill:#8ecbf0}.k2{fill:#74cdac}.k3{fill:#dcb2d6}.k4{fill:#cfcfcf}.k5{"
	"fill:#f0a8a0}"
	"@media(prefers-color-scheme:dark){"
	"text{fill:#f2f2f2}"
	".bg{fill:#16191d}"
	".b{stroke:#16191d}"
	".k0{fill:#8a5a00}.k1{fill:#1f5f8b}.k2{fill:#00664b}.k3{fill:#7d4474}.k4{fill:#4d5257}.k5{"
	"fill:#8c3b34}"
	"}"
	"</style>\n";

static const char *const kind_words[] = {
	[FATHOM_SVG_FILE] = "programs and libraries",
	[FATHOM_SVG_KERNEL] = "kernel",
	[FATHOM_SVG_JIT] = "JIT code",
	[FATHOM_SVG_WAIT] = "waits",
	[FATHOM_SVG_OTHER] = "other",
	[FATHOM_SVG_SCRIPT] = "scripts",
};

static enum fathom_svg_kind kind_of_module(uint8_t kind)
{
	switch (kind) {
	case FATHOM_PROFILE_MODULE_FILE:
		return FATHOM_SVG_FILE;
	case FATHOM_PROFILE_MODULE_KERNEL:
		return FATHOM_SVG_KERNEL;
	case FATHOM_PROFILE_MODULE_JIT:
		return FATHOM_SVG_JIT;
	case FATHOM_PROFILE_MODULE_WAITS:
		return FATHOM_SVG_WAIT;
	case FATHOM_PROFILE_MODULE_SCRIPT:
		return FATHOM_SVG_SCRIPT;
	default:
		return FATHOM_SVG_OTHER;
	}
}

void fathom_svg_init(struct fathom_svg *p, const struct fathom_export *e,
		     const struct fathom_report *r)
{
	const struct fathom_profile *profile = e->profile;

	*p = (struct fathom_svg){ .w = fathom_export_writer(e),
				  .profile = profile,
				  .sums = fathom_report_get_sums(r),
				  .kinds = calloc(profile->n_modules + 1, 1),
				  .is_time =
					  e->options->time || strcmp(profile->info.unit, "ns") == 0,
				  .is_wait = e->options->time == FATHOM_REPORT_WAITING,
				  .has_waits = e->options->time != FATHOM_REPORT_CPU };
	p->w.no_memory |= !p->kinds;
	for (size_t i = 0; i < profile->n_modules && !p->w.no_memory; i++) {
		const uint32_t number = fathom_name_table_add(&p->paths, profile->modules[i].path);

		p->w.no_memory |= number == FATHOM_KEY_NEW;
		if (!p->w.no_memory)
			p->kinds[number] = (uint8_t)kind_of_module(profile->modules[i].kind);
	}
}

fathom_err fathom_svg_end(struct fathom_svg *p, struct fathom_errinfo *reterr)
{
	fathom_name_table_deinit(&p->paths);
	free(p->kinds);
	return fathom_export_end(&p->w, reterr);
}

enum fathom_svg_kind fathom_svg_kind_of(struct fathom_svg *p, const struct fathom_report_row *row)
{
	uint32_t number;

	if (row->kind == FATHOM_REPORT_ROW_KERNEL_HIDDEN)
		return FATHOM_SVG_KERNEL;
	if (row->kind != FATHOM_REPORT_ROW_CODE || !row->module)
		return FATHOM_SVG_OTHER;
	/* All modules are in it. */
	number = fathom_name_table_add(&p->paths, row->module);
	if (number >= p->profile->n_modules) {
		p->w.no_memory = true;
		return FATHOM_SVG_OTHER;
	}
	return (enum fathom_svg_kind)p->kinds[number];
}

void fathom_svg_line(struct fathom_svg *p, double x, double y, const char *text, size_t columns)
{
	const size_t begin = p->w.out.n;

	fathom_writer_str(&p->w, "<text");
	fathom_svg_attribute(&p->w, "x", x);
	fathom_svg_attribute(&p->w, "y", y);
	fathom_writer_str(&p->w, ">");
	if (fathom_svg_text(&p->w, text, columns))
		fathom_writer_str(&p->w, "</text>");
	else
		p->w.out.n = begin;
}

/* A line of the header. */
typedef char fact[FACT_SIZE];

static void add_when(const struct fathom_svg *p, fact to)
{
	const struct fathom_profile_info *info = &p->profile->info;
	const time_t seconds = (time_t)(info->started / 1000000000);
	char when[40] = "";
	struct tm tm;

	if (info->started && gmtime_r(&seconds, &tm))
		(void)strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S UTC, ", &tm);
	(void)snprintf(to, FACT_SIZE, "recorded %sfor %" PRIu64 ".%03u s%s%.60s%s%.40s%s%.20s",
		       when, info->duration_ns / 1000000000,
		       (unsigned)(info->duration_ns / 1000000 % 1000), *info->host ? ", on " : "",
		       info->host, *info->kernel ? ", Linux " : "", info->kernel,
		       *info->machine ? ", " : "", info->machine);
}

static void add_samples(const struct fathom_svg *p, fact to)
{
	const struct fathom_profile_info *info = &p->profile->info;
	const struct fathom_report_sums *s = p->sums;
	char weight[FATHOM_SVG_WEIGHT_SIZE];
	char shown[FATHOM_SVG_WEIGHT_SIZE] = "";
	char whole[FATHOM_SVG_WEIGHT_SIZE] = "";

	if (s->shown != s->weight)
		(void)fathom_svg_percent(shown, s->shown, s->weight);
	if (!info->has_unknown_ends)
		(void)fathom_svg_percent(whole, s->n_whole, s->n_stacks);
	(void)snprintf(to, FACT_SIZE, "%" PRIu64 " %s of %s%s%s%s%s%s%s%.40s%s%.40s", s->n_samples,
		       p->is_wait     ? "waits"
		       : p->has_waits ? "samples and waits"
				      : "samples",
		       fathom_svg_weight(weight, s->weight, p->is_time), *shown ? ", shown: " : "",
		       shown, *whole ? ", " : "", whole, *whole ? " of the stacks whole" : "",
		       *info->event && !p->is_wait ? "; " : "", p->is_wait ? "" : info->event,
		       *info->method ? ", by " : "", info->method);
}

/* Makes the facts; returns their number. */
static size_t make_facts(const struct fathom_svg *p, fact facts[MOST_FACTS])
{
	const struct fathom_profile_info *info = &p->profile->info;
	char text[FATHOM_SVG_WEIGHT_SIZE];
	size_t n = 2;

	add_when(p, facts[0]);
	add_samples(p, facts[1]);
	if (info->is_kernel_hidden && !p->is_wait)
		(void)snprintf(facts[n++], FACT_SIZE, "the kernel's stacks were not permitted: %s",
			       fathom_svg_percent(text, p->sums->hidden, p->sums->weight));
	if (p->sums->unsampled)
		(void)snprintf(facts[n++], FACT_SIZE, "%s was counted without a sample",
			       fathom_svg_percent(text, p->sums->unsampled, p->sums->weight));
	if (info->lost)
		(void)snprintf(facts[n++], FACT_SIZE,
			       "%" PRIu64 " samples were lost: they found no room", info->lost);
	if (info->throttled)
		(void)snprintf(facts[n++], FACT_SIZE,
			       "the kernel has held samples back %" PRIu64 " time%s",
			       info->throttled, info->throttled == 1 ? "" : "s");
	if (!info->is_complete)
		(void)snprintf(facts[n++], FACT_SIZE, "the file ends before the recording did");
	return n;
}

double fathom_svg_header_height(const struct fathom_svg *p)
{
	fact facts[MOST_FACTS];

	return FIRST_FACT + FACT_PITCH * (double)make_facts(p, facts);
}

void fathom_svg_begin(struct fathom_svg *p, const char *title, double height)
{
	struct fathom_trace_writer *w = &p->w;
	fact facts[MOST_FACTS];
	const size_t n = make_facts(p, facts);
	const char *command = p->profile->info.command;
	char whole[FATHOM_SVG_TOOLTIP];

	(void)snprintf(whole, sizeof whole, "%s%s%s", title, *command ? ": " : "", command);
	fathom_writer_str(w, "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\"");
	fathom_svg_attribute(w, "width", FATHOM_SVG_WIDTH);
	fathom_svg_attribute(w, "height", height);
	fathom_writer_str(w, " viewBox=\"0 0 ");
	fathom_svg_pixels(w, FATHOM_SVG_WIDTH);
	fathom_writer_str(w, " ");
	fathom_svg_pixels(w, height);
	fathom_writer_str(w, "\">\n<title>");
	(void)fathom_svg_text(w, whole, FATHOM_SVG_TOOLTIP);
	fathom_writer_str(w, "</title>\n");
	fathom_writer_str(w, style);
	fathom_writer_str(w,
			  "<rect class=\"bg\" width=\"100%\" height=\"100%\"/>\n<g class=\"h\">");
	fathom_writer_str(w, "<text class=\"t\"");
	fathom_svg_attribute(w, "x", FATHOM_SVG_MARGIN);
	fathom_svg_attribute(w, "y", TITLE_BASE);
	fathom_writer_str(w, ">");
	/* Letters of the title are wider. */
	(void)fathom_svg_text(w, whole, FATHOM_SVG_COLUMNS * 3 / 4);
	fathom_writer_str(w, "</text>\n");
	for (size_t i = 0; i < n; i++) {
		fathom_svg_line(p, FATHOM_SVG_MARGIN, FIRST_FACT + FACT_PITCH * (double)i, facts[i],
				FATHOM_SVG_COLUMNS);
		fathom_writer_str(w, "\n");
	}
	fathom_writer_str(w, "</g>\n");
}

void fathom_svg_tooltip(struct fathom_svg *p, const char *name, const struct fathom_report_row *row,
			uint64_t weight, uint64_t self)
{
	struct fathom_trace_writer *w = &p->w;
	char text[FATHOM_SVG_WEIGHT_SIZE];

	fathom_writer_str(w, "<title>");
	(void)fathom_svg_text(w, name, FATHOM_SVG_TOOLTIP);
	fathom_writer_str(w, "\n");
	fathom_writer_str(w, fathom_svg_weight(text, weight, p->is_time));
	fathom_writer_str(w, ", ");
	fathom_writer_str(w, fathom_svg_percent(text, weight, p->sums->weight));
	if (self) {
		fathom_writer_str(w, "; of its own ");
		fathom_writer_str(w, fathom_svg_weight(text, self, p->is_time));
		fathom_writer_str(w, ", ");
		fathom_writer_str(w, fathom_svg_percent(text, self, p->sums->weight));
	}
	if (row->module) {
		fathom_writer_str(w, "\n");
		(void)fathom_svg_text(w, row->module, FATHOM_SVG_TOOLTIP);
	}
	fathom_writer_str(w, "</title>");
}

void fathom_svg_box(struct fathom_svg *p, enum fathom_svg_kind kind, const char *name, double x,
		    double y, double width, double height)
{
	unsigned shade = 0;
	char class[24];

	for (; *name; name++)
		shade = shade * 31 + (unsigned char)*name;
	(void)snprintf(class, sizeof class, "<rect class=\"b k%u%s\"", (unsigned)kind,
		       shade >> 3 & 1 ? " s" : "");
	fathom_writer_str(&p->w, class);
	fathom_svg_attribute(&p->w, "x", x);
	fathom_svg_attribute(&p->w, "y", y);
	fathom_svg_attribute(&p->w, "width", width);
	fathom_svg_attribute(&p->w, "height", height);
	fathom_writer_str(&p->w, "/>");
}

void fathom_svg_legend(struct fathom_svg *p, unsigned kinds, double y)
{
	double x = FATHOM_SVG_MARGIN;

	fathom_writer_str(&p->w, "<g class=\"l\">");
	for (unsigned i = 0; i < FATHOM_SVG_KINDS; i++) {
		const size_t columns = strlen(kind_words[i]);

		if (!(kinds & 1u << i))
			continue;
		fathom_svg_box(p, (enum fathom_svg_kind)i, "", x, y - LEGEND_SQUARE + 1,
			       LEGEND_SQUARE, LEGEND_SQUARE);
		fathom_svg_line(p, x + LEGEND_SQUARE + 5, y, kind_words[i], columns);
		x += LEGEND_SQUARE + 5 + FATHOM_SVG_ADVANCE * (double)(columns + 3);
	}
	fathom_writer_str(&p->w, "</g>\n</svg>\n");
}
