/* SPDX-License-Identifier: MIT */
/* Lines of source around the places of answers (--source). */
#ifndef FATHOM_CLI_SOURCE_PRINTER_H
#define FATHOM_CLI_SOURCE_PRINTER_H

#include "cli/common.h"
#include "cli/out.h"

/* Prints lines of the files of one target. All zero: prints nothing. */
struct source_printer {
	struct fathom_source_files *files;
	struct fathom_target *target;
	uint32_t n;         /* lines for each place */
	const char *indent; /* before each line of text */
	char **told;        /* files of which a note was printed */
	size_t n_told;
	bool is_terse; /* the reason why a file has no lines is not repeated before another's */
	char *refused; /* the file whose reason was printed last, if is_terse; NULL: none */
};

/* Prepares @s if lines were asked for; exits with status 2 on failure. */
void source_init(struct source_printer *s, const struct common *c, struct fathom_target *target,
		 const char *indent);
void source_deinit(struct source_printer *s);

/* Returns whether @s, which may be NULL, prints lines. */
bool source_is_wanted(const struct source_printer *s);

/*
 * Print the lines around @frame, a frame of the answer for @pc, or why there are none; nothing if
 * no lines are wanted. JSON: members, each after a comma.
 */
void source_print(struct out *o, struct source_printer *s, struct fathom_pc pc,
		  const struct fathom_frame *frame);
void source_json(struct out *o, struct source_printer *s, struct fathom_pc pc,
		 const struct fathom_frame *frame);

#endif
