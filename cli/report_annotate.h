/* SPDX-License-Identifier: MIT */
/* Instructions and source lines of functions (--annotate), as text and as JSON Lines. */
#ifndef FATHOM_CLI_REPORT_ANNOTATE_H
#define FATHOM_CLI_REPORT_ANNOTATE_H

#include "cli/report_print.h"

/* How annotations are printed. */
struct annotate_print {
	const struct report_print *print; /* top: functions */
	const struct fathom_report_sums *sums;
	bool is_hot_first; /* the hottest lines first, each with its instructions */
	bool is_whole;     /* also what has no samples */
};

/* Annotates functions of the profile, and prints them; returns the exit status. */
int report_annotate(const struct annotate_print *p, struct fathom_annotation_options *o,
		    const char *path, bool json, struct out *out);

/* Print function @number, @f. */
void annotate_text(const struct annotate_print *p, struct out *o, size_t number,
		   const struct fathom_annotated_function *f);
void annotate_json(struct out *o, size_t number, const struct fathom_annotated_function *f);

/* A row of the text, and where it jumps to. */
struct jump_row {
	size_t to; /* row; SIZE_MAX: it does not jump, or not to a row */
};

/* Lines of jumps beside rows. All zero, there are none. */
struct jump_lines {
	char *cells;
	size_t width; /* of each row */
};

/* Draws the jumps of @n @rows. */
void jump_lines_init(struct jump_lines *l, const struct jump_row *rows, size_t n);
void jump_lines_deinit(struct jump_lines *l);

#endif
