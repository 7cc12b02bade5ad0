/* SPDX-License-Identifier: MIT */
/*
 * A flame graph as a picture that stands for itself: no script, no other file. Boxes are the paths
 * of collapsed stacks, the outermost function at the bottom; siblings are in the order of their
 * names. Boxes that nobody could see are left out and counted.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "host/exchange/name_paths.h"
#include "host/exchange/svg_page.h"
#include "safe/base/error.h"

/* Pixels: of a box with the gap above it, and of the narrowest one. */
#define PITCH    17
#define HEIGHT   16
#define BASE     12
#define NARROW   .2
#define PADDING  3
#define BELOW    12 /* between the boxes and the base line of what is below them */
#define FOOTNOTE 18
/* Levels, and boxes, that are drawn at most. */
#define MOST_LEVELS 256
#define MOST_BOXES  20000

struct flame {
	struct fathom_svg svg;
	struct fathom_name_paths paths;
	uint64_t *totals; /* by path */
	uint64_t *starts; /* weight to the left of each path */
	uint8_t *drawn;   /* 1: the path is a box; 2: it is left out, and its caller is one */
	uint64_t least;   /* weight of a box */
	uint32_t levels;
	uint64_t n_left_out; /* boxes whose caller is one */
	uint64_t left_out;   /* their weight */
	unsigned kinds;      /* of the boxes */
};

/* Adds weights up, and finds where each path begins. */
static bool lay_out(struct flame *f)
{
	struct fathom_name_paths *p = &f->paths;
	const size_t n = p->n;

	f->totals = calloc(n, sizeof *f->totals);
	f->starts = calloc(n, sizeof *f->starts);
	f->drawn = calloc(n, sizeof *f->drawn);
	if (!f->totals || !f->starts || !f->drawn)
		return false;
	for (size_t i = n; i--;) {
		f->totals[i] += p->items[i].weight;
		if (i)
			f->totals[p->items[i].parent] += f->totals[i];
	}
	for (size_t i = 0; i < n; i++) {
		uint64_t at = f->starts[i];

		for (size_t k = p->first[i]; k < n - 1 && p->items[p->order[k]].parent == i; k++) {
			f->starts[p->order[k]] = at;
			at += f->totals[p->order[k]];
		}
	}
	return true;
}

static int compare_down(const void *a, const void *b)
{
	return u64_compare(*(const uint64_t *)b, *(const uint64_t *)a);
}

/* Finds the least weight of a box: of the narrowest one, or so that there are not too many. */
static bool find_least(struct flame *f)
{
	const size_t n = f->paths.n - 1;
	const double narrow = NARROW / FATHOM_SVG_INNER * (double)f->totals[0];
	uint64_t *sorted;

	f->least = (uint64_t)narrow;
	f->least += (double)f->least < narrow || !f->least;
	if (n <= MOST_BOXES)
		return true;
	sorted = malloc(n * sizeof *sorted);
	if (!sorted)
		return false;
	memcpy(sorted, f->totals + 1, n * sizeof *sorted);
	qsort(sorted, n, sizeof *sorted, compare_down);
	/* Equal ones are all drawn, or none. */
	if (sorted[MOST_BOXES] >= f->least)
		f->least = sorted[MOST_BOXES] + 1;
	free(sorted);
	return true;
}

/* Chooses the boxes. A caller has a lower number, and no less weight. */
static void choose(struct flame *f)
{
	f->drawn[0] = 1;
	for (size_t i = 1; i < f->paths.n; i++) {
		const struct fathom_name_path *path = &f->paths.items[i];

		if (f->drawn[path->parent] != 1)
			continue;
		f->drawn[i] = f->totals[i] >= f->least && path->depth <= MOST_LEVELS ? 1 : 2;
		if (f->drawn[i] == 2) {
			f->n_left_out++;
			f->left_out += f->totals[i];
		} else if (path->depth > f->levels) {
			f->levels = path->depth;
		}
	}
}

static double pixels(const struct flame *f, uint64_t weight)
{
	return (double)weight / (double)f->totals[0] * FATHOM_SVG_INNER;
}

static void put_box(struct flame *f, size_t i, double bottom)
{
	struct fathom_svg *svg = &f->svg;
	const struct fathom_name_path *path = &f->paths.items[i];
	const char *name = fathom_name_path_text(&f->paths, i);
	const enum fathom_svg_kind kind = fathom_svg_kind_of(svg, path->row);
	const double x = FATHOM_SVG_MARGIN + pixels(f, f->starts[i]);
	const double y = bottom - PITCH * (double)path->depth;
	const double width = pixels(f, f->totals[i]);
	const double room = width - 2. * PADDING;

	f->kinds |= 1u << kind;
	fathom_writer_str(&svg->w, "<g>");
	fathom_svg_tooltip(svg, name, path->row, f->totals[i], path->weight);
	fathom_svg_box(svg, kind, name, x, y, width, HEIGHT);
	if (room > 0)
		fathom_svg_line(svg, x + PADDING, y + BASE, name,
				(size_t)(room / FATHOM_SVG_ADVANCE));
	fathom_writer_str(&svg->w, "</g>\n");
	fathom_writer_pass_on(&svg->w);
}

/* Says what is not drawn, at the base line @y. */
static void put_left_out(struct flame *f, double y)
{
	struct fathom_svg *svg = &f->svg;
	char percent[FATHOM_SVG_WEIGHT_SIZE];
	char text[160];

	(void)fathom_svg_percent(percent, f->left_out, svg->sums->weight);
	(void)snprintf(text, sizeof text,
		       "%" PRIu64 " box%s too narrow%s to be drawn, with what is above: %s of all",
		       f->n_left_out, f->n_left_out == 1 ? " is" : "es are",
		       f->levels == MOST_LEVELS ? " or too high" : "", percent);
	fathom_svg_line(svg, FATHOM_SVG_MARGIN, y, text, FATHOM_SVG_COLUMNS);
	fathom_writer_str(&svg->w, "\n");
}

static void put_picture(struct flame *f)
{
	const double top = fathom_svg_header_height(&f->svg);
	const double bottom = top + PITCH * (double)f->levels;
	const double footnote = f->n_left_out ? FOOTNOTE : 0;
	const double legend = bottom + BELOW + footnote + FOOTNOTE / 2.;
	const char *title = f->svg.is_wait     ? "Waits by stack"
			    : f->svg.has_waits ? "Processor time and waits by stack"
			    : f->svg.is_time   ? "Processor time by stack"
					       : "Samples by stack";

	fathom_svg_begin(&f->svg, title, legend + FATHOM_SVG_MARGIN);
	for (size_t i = 1; i < f->paths.n && !f->svg.w.no_memory && !f->svg.w.has_failed; i++)
		if (f->drawn[i] == 1)
			put_box(f, i, bottom);
	if (f->n_left_out)
		put_left_out(f, bottom + BELOW + FOOTNOTE / 2.);
	fathom_svg_legend(&f->svg, f->kinds, legend);
}

fathom_err fathom_export_svg(const struct fathom_export *e, struct fathom_errinfo *reterr)
{
	struct fathom_report_options o = *e->options;
	struct flame f = { .paths = { .profile = e->profile, .deepest = UINT32_MAX } };
	struct fathom_report *r;
	fathom_err err;

	o.key = FATHOM_REPORT_BY_PROCESS;
	FATHOM_TRY(fathom_report_create(e->profile, &o, &r, reterr));
	fathom_svg_init(&f.svg, e, r);
	fathom_name_paths_make(&f.paths, r);
	f.svg.w.no_memory |= f.paths.no_memory;
	if (!f.svg.w.no_memory && lay_out(&f) && find_least(&f)) {
		choose(&f);
		put_picture(&f);
	} else {
		f.svg.w.no_memory = true;
	}
	err = fathom_svg_end(&f.svg, reterr);
	fathom_name_paths_deinit(&f.paths);
	fathom_report_free(r);
	free(f.totals);
	free(f.starts);
	free(f.drawn);
	return err;
}
