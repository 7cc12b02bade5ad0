/* SPDX-License-Identifier: MIT */
/* The functions with the most weight as a bar chart, a picture as that of export_svg.c. */
#include <inttypes.h>
#include <stdio.h>

#include "host/base/path.h"
#include "host/exchange/svg_page.h"
#include "safe/base/error.h"

#define MOST_BARS 20
/* Pixels. */
#define PITCH      22
#define HEIGHT     16
#define BASE       12
#define BARS_BEGIN 440.
#define BARS_END   1010. /* of the longest one; its numbers stand on its right */
#define GAP        8
#define LEGEND     24

/* Columns of the names of functions, and of the numbers. */
#define NAME_COLUMNS   ((size_t)((BARS_BEGIN - FATHOM_SVG_MARGIN - GAP) / FATHOM_SVG_ADVANCE))
#define NUMBER_COLUMNS 24
/* Bytes of a name that are looked at: a column has four at most. */
#define NAME_SIZE 256

static void put_bar(struct fathom_svg *p, const struct fathom_report_row *row, double y,
		    uint64_t most)
{
	const enum fathom_svg_kind kind = fathom_svg_kind_of(p, row);
	const char *module = fathom_path_last_part(row->module);
	const double width = (double)row->self / (double)most * (BARS_END - BARS_BEGIN);
	char percent[FATHOM_SVG_WEIGHT_SIZE];
	char weight[FATHOM_SVG_WEIGHT_SIZE];
	char numbers[2 * FATHOM_SVG_WEIGHT_SIZE + 2];
	char name[NAME_SIZE];

	/* A name that is longer has no room for the module. */
	(void)snprintf(name, sizeof name, module ? "%s  %s" : "%s", row->name, module);
	(void)snprintf(numbers, sizeof numbers, "%s  %s",
		       fathom_svg_percent(percent, row->self, p->sums->weight),
		       fathom_svg_weight(weight, row->self, p->is_time));
	fathom_writer_str(&p->w, "<g>");
	fathom_svg_tooltip(p, row->name, row, row->total, row->self);
	fathom_svg_line(p, FATHOM_SVG_MARGIN, y + BASE, name, NAME_COLUMNS);
	fathom_svg_box(p, kind, "", BARS_BEGIN, y, width, HEIGHT);
	fathom_svg_line(p, BARS_BEGIN + width + GAP, y + BASE, numbers, NUMBER_COLUMNS);
	fathom_writer_str(&p->w, "</g>\n");
}

/* Says at the base line @y what the rows after the @shown first ones have. */
static void put_others(struct fathom_svg *p, const struct fathom_report_row *rows, size_t n,
		       size_t shown, double y)
{
	char percent[FATHOM_SVG_WEIGHT_SIZE];
	char text[96];
	uint64_t left = 0;

	for (size_t i = shown; i < n; i++)
		left += rows[i].self;
	(void)snprintf(text, sizeof text, "%zu other function%s: %s", n - shown,
		       n - shown == 1 ? "" : "s",
		       fathom_svg_percent(percent, left, p->sums->weight));
	fathom_svg_line(p, FATHOM_SVG_MARGIN, y, text, FATHOM_SVG_COLUMNS);
	fathom_writer_str(&p->w, "\n");
}

static void put_picture(struct fathom_svg *p, const struct fathom_report *r)
{
	const double top = fathom_svg_header_height(p);
	const char *title = p->is_wait     ? "Waits by function"
			    : p->has_waits ? "Processor time and waits by function"
			    : p->is_time   ? "Processor time by function"
					   : "Samples by function";
	size_t n;
	const struct fathom_report_row *rows = fathom_report_rows(r, &n);
	size_t shown = 0;
	size_t n_self = 0;
	double end;
	unsigned kinds = 0;

	while (n_self < n && rows[n_self].self)
		n_self++;
	shown = n_self < MOST_BARS ? n_self : MOST_BARS;
	end = top + PITCH * (double)(shown + (shown < n_self));
	fathom_svg_begin(p, title, end + LEGEND + FATHOM_SVG_MARGIN);
	for (size_t i = 0; i < shown; i++) {
		kinds |= 1u << fathom_svg_kind_of(p, &rows[i]);
		put_bar(p, &rows[i], top + PITCH * (double)i, rows[0].self);
	}
	if (shown < n_self)
		put_others(p, rows, n_self, shown, top + PITCH * (double)shown + BASE);
	fathom_svg_legend(p, kinds, end + LEGEND);
}

fathom_err fathom_export_svg_bars(const struct fathom_export *e, struct fathom_errinfo *reterr)
{
	struct fathom_report *r;
	struct fathom_svg p;
	fathom_err err;

	FATHOM_TRY(fathom_report_create(e->profile, e->options, &r, reterr));
	fathom_svg_init(&p, e, r);
	if (!p.w.no_memory)
		put_picture(&p, r);
	err = fathom_svg_end(&p, reterr);
	fathom_report_free(r);
	return err;
}
