/* SPDX-License-Identifier: MIT */
/*
 * The frame of all pictures: size, styles for light and dark, a header with facts about the
 * profile, colours by kinds of code, and a legend of those.
 */
#ifndef FATHOM_EXCHANGE_SVG_PAGE_H
#define FATHOM_EXCHANGE_SVG_PAGE_H

#include "host/base/name_table.h"
#include "host/exchange/exporting.h"
#include "host/exchange/svg_text.h"

/* Pixels. */
#define FATHOM_SVG_WIDTH  1200
#define FATHOM_SVG_MARGIN 10
#define FATHOM_SVG_INNER  (FATHOM_SVG_WIDTH - 2 * FATHOM_SVG_MARGIN)
/* The advance of a character of the fonts that are asked for, at their size, at most. */
#define FATHOM_SVG_ADVANCE 7.25
/* Columns of a whole line. */
#define FATHOM_SVG_COLUMNS ((size_t)(FATHOM_SVG_INNER / FATHOM_SVG_ADVANCE))
/* Columns of a text that is no part of the picture but shown on demand. */
#define FATHOM_SVG_TOOLTIP 400

/* Kinds of code, which have colours. */
enum fathom_svg_kind {
	FATHOM_SVG_FILE,
	FATHOM_SVG_KERNEL,
	FATHOM_SVG_JIT,
	FATHOM_SVG_WAIT,
	FATHOM_SVG_OTHER,
	FATHOM_SVG_SCRIPT,
	FATHOM_SVG_KINDS
};

struct fathom_svg {
	struct fathom_trace_writer w;
	const struct fathom_profile *profile;
	const struct fathom_report_sums *sums;
	struct fathom_name_table paths; /* of modules */
	uint8_t *kinds;                 /* by number of these */
	bool is_time;                   /* weights are nanoseconds */
	bool is_wait;                   /* all of them are waits */
	bool has_waits;                 /* some of them are */
};

/* Prepares @p for the pictures of @r. Sets w.no_memory if it cannot. */
void fathom_svg_init(struct fathom_svg *p, const struct fathom_export *e,
		     const struct fathom_report *r);
/* Passes on what is left, frees @p, and returns the error of writing. */
fathom_err fathom_svg_end(struct fathom_svg *p, struct fathom_errinfo *reterr);

/* Returns the height of the header. */
double fathom_svg_header_height(const struct fathom_svg *p);
/* Begins the picture of @height, which is called @title. */
void fathom_svg_begin(struct fathom_svg *p, const char *title, double height);

/* Writes @text at @x and the base line @y, cut to @columns; nothing if that is too narrow. */
void fathom_svg_line(struct fathom_svg *p, double x, double y, const char *text, size_t columns);
/* Writes the title of the box of @row: its name, its part of all weight, its module. */
void fathom_svg_tooltip(struct fathom_svg *p, const char *name, const struct fathom_report_row *row,
			uint64_t weight, uint64_t self);
/* Writes a box in the colour of @kind; @name chooses its shade. */
void fathom_svg_box(struct fathom_svg *p, enum fathom_svg_kind kind, const char *name, double x,
		    double y, double width, double height);
/* Returns the kind of the code that @row is. */
enum fathom_svg_kind fathom_svg_kind_of(struct fathom_svg *p, const struct fathom_report_row *row);
/* Writes what the colours of @kinds mean, bits 1 << kind, and ends the picture. */
void fathom_svg_legend(struct fathom_svg *p, unsigned kinds, double y);

#endif
