/* SPDX-License-Identifier: MIT */
/* Answers as text for people, and as JSON Lines. */
#ifndef FATHOM_CLI_PRINT_H
#define FATHOM_CLI_PRINT_H

#include <stdbool.h>

#include <fathom/fathom.h>

#include "cli/out.h"
#include "cli/source_printer.h"

/* One line of input: an address, or the reason why it is not one. */
struct input {
	const char *text;
	uint64_t address;
	uint32_t size;  /* of text, bytes; a line of 4 GiB is shown cut */
	uint8_t reason; /* enum fathom_reason; FATHOM_REASON_NONE: address is valid */
	uint8_t kind;   /* enum input_kind, of input.h */
	bool more;      /* the next input is another address of the same text */
};

/* Returns the innermost frame of @a; if only a symbol is known, fills and returns @of_symbol. */
const struct fathom_frame *print_first_frame(const struct fathom_answer *a,
					     struct fathom_frame *of_symbol);

/* Prints a name of @size bytes, in its colour. */
void print_symbol(struct out *o, const char *name, size_t size);

/* Prints the name of @frame, or ??, and its file and line. */
void print_function(struct out *o, const struct fathom_frame *frame);
/* The same of a script, whose line may not be known. */
void print_script_function(struct out *o, const struct fathom_frame *frame);

/* Prints why there is no answer, in parentheses. */
void print_reason(struct out *o, uint8_t reason);

/*
 * Print the answer @a for @in, with lines of source if @s, which may be NULL, wants them; NULL: @in
 * is not an address.
 */
void print_text(struct out *o, const struct input *in, const struct fathom_answer *a,
		struct source_printer *s);
/* Leaves the object open. */
void print_json(struct out *o, const struct input *in, const struct fathom_target_info *target,
		const struct fathom_answer *a, struct source_printer *s);

/*
 * Print parts of an answer, for verbs that have more to say: name, file and line of the innermost
 * frame; each frame that it is inlined into, between @before and @after, with lines of source if
 * @s, which may be NULL, wants them; the members of JSON.
 */
void print_innermost(struct out *o, const struct fathom_answer *a);
void print_inlined(struct out *o, const struct fathom_answer *a, const char *before,
		   const char *after, struct source_printer *s);
void print_members(struct out *o, const struct fathom_answer *a, struct source_printer *s);

#endif
