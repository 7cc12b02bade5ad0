/* SPDX-License-Identifier: MIT */
/* Ranges of code as arguments ask for them: FUNCTION, ADDRESS or ADDRESS..END. */
#ifndef FATHOM_CLI_CODE_RANGE_H
#define FATHOM_CLI_CODE_RANGE_H

#include "cli/input.h"
#include "cli/out.h"

/* Instructions shown where no function is known. */
#define RANGE_WITHOUT_FUNCTION 16

/* A requested range of code. */
struct range {
	uint64_t start;
	uint64_t end;
	uint32_t most; /* instructions; 0: all to the end */
};

/* The arguments, whose names were looked up at once. */
struct range_reader {
	const struct input_rules *rules;
	struct fathom_target_info info;
	struct input *inputs; /* possible parts of the arguments */
	size_t n;
	size_t cap;
	size_t next;         /* the first input of the next argument */
	size_t whole;        /* that of the last one taken */
	unsigned complaints; /* missing names for which suggestions were searched */
	unsigned copied;     /* missing names whose inlined copies were searched */
};

/* Parses @n @arguments. Exits on failure. */
void range_reader_init(struct range_reader *r, const struct input_rules *rules, int n,
		       char *const *arguments);
void range_reader_deinit(struct range_reader *r);

/*
 * Finds the range that the next argument, @text, asks for; returns a reason (enum fathom_reason) on
 * failure. @out is flushed before an exit.
 */
uint8_t range_take(struct range_reader *r, const char *text, struct out *out, struct range *ret);

/* If the last argument is only inlined, writes ,"inlined_copies":[...]. */
void range_copies_json(struct range_reader *r, struct out *o);

/* Suggests a symbol for the last argument, whose symbol was not found. */
void range_complain(struct range_reader *r);

/* Returns @address as the user writes it: in a relocatable file, the offset in its section. */
uint64_t range_shown(const struct range_reader *r, uint64_t address);

#endif
