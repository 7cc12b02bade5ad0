/* SPDX-License-Identifier: MIT */
/*
 * Collapsed stacks of a profile: the tree by process, in which functions of equal names are one. It
 * is written by the names of siblings, so that lines are sorted by their paths.
 */
#include <stdlib.h>
#include <string.h>

#include "host/events/collapsed_line.h"
#include "host/exchange/name_paths.h"
#include "safe/base/error.h"

/* Writes all paths, each before those below it. */
static void write_paths(const struct fathom_name_paths *p, struct fathom_collapsed_line *line)
{
	const size_t n = p->n - 1;
	uint32_t *next = malloc(p->n * sizeof *next); /* of each path: where to go on below it */
	uint32_t at = 0;

	if (!next) {
		line->writer->no_memory = true;
		return;
	}
	memcpy(next, p->first, p->n * sizeof *next);
	while (!line->writer->no_memory && !line->writer->has_failed) {
		const uint32_t i = next[at];

		if (i >= n || p->items[p->order[i]].parent != at) {
			if (!at)
				break;
			at = p->items[at].parent;
			continue;
		}
		next[at]++;
		at = p->order[i];
		fathom_collapsed_line_name(line, p->items[at].depth - 1,
					   fathom_name_path_text(p, at));
		if (p->items[at].weight)
			fathom_collapsed_line_put(line, p->items[at].weight);
	}
	free(next);
}

/* Writes the tree of @r. */
static fathom_err write_tree(const struct fathom_export *e, const struct fathom_report *r,
			     struct fathom_errinfo *reterr)
{
	struct fathom_name_paths p = { .profile = e->profile,
				       .deepest = FATHOM_COLLAPSED_DEEP + 1 };
	struct fathom_trace_writer w = fathom_export_writer(e);
	struct fathom_collapsed_line line = { .writer = &w };

	fathom_name_paths_make(&p, r);
	if (!p.no_memory)
		write_paths(&p, &line);
	w.no_memory |= p.no_memory;
	fathom_collapsed_line_deinit(&line);
	fathom_name_paths_deinit(&p);
	return fathom_export_end(&w, reterr);
}

fathom_err fathom_export_collapsed(const struct fathom_export *e, struct fathom_errinfo *reterr)
{
	struct fathom_report_options o = *e->options;
	struct fathom_report *r;
	fathom_err err;

	o.key = FATHOM_REPORT_BY_PROCESS;
	FATHOM_TRY(fathom_report_create(e->profile, &o, &r, reterr));
	err = write_tree(e, r, reterr);
	fathom_report_free(r);
	return err;
}
