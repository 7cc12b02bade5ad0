/* SPDX-License-Identifier: MIT */
/*
 * Lines of collapsed stacks, "NAME;NAME WEIGHT", the outermost name first. What would part names or
 * end them is escaped: fathom_point_escape_collapsed().
 *
 * The size of this format grows with the square of the depth, so that stacks have a deepest level.
 */
#ifndef FATHOM_EVENTS_COLLAPSED_LINE_H
#define FATHOM_EVENTS_COLLAPSED_LINE_H

#include "host/events/writer.h"

/* The number of the deepest level; that of the first is 0. */
#define FATHOM_COLLAPSED_DEEP 1024

/* The line under construction. All zero but the writer, it is empty. */
struct fathom_collapsed_line {
	struct fathom_trace_writer *writer; /* takes the lines; only its way out is used */
	struct fathom_bytes_array text;
	size_t end[FATHOM_COLLAPSED_DEEP + 1]; /* bytes of text up to each level */
};

/* Sets the name of level @depth, where the line ends then; the levels above it have names. */
void fathom_collapsed_line_name(struct fathom_collapsed_line *line, uint32_t depth,
				const char *name);
/* Writes the line. */
void fathom_collapsed_line_put(struct fathom_collapsed_line *line, uint64_t weight);
void fathom_collapsed_line_deinit(struct fathom_collapsed_line *line);

#endif
