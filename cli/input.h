/* SPDX-License-Identifier: MIT */
/* Addresses as people and programs write them, one by one or as a stream. */
#ifndef FATHOM_INPUT_H
#define FATHOM_INPUT_H

#include "print.h"

struct input_rules {
	struct fathom_target *target;
	const char *section; /* numbers are offsets in it; NULL: none */
	bool hex;            /* digits only are hexadecimal, too */
};

/* Makes the rules those of the target that @info tells of; exits when it has no sections. */
void input_rules_check(struct input_rules *rules, const struct fathom_target_info *info);

/* Reads @text: 0x..., digits, or a symbol with or without +offset. */
void input_parse(const struct input_rules *rules, const char *text, size_t size, struct input *ret);

/* Lines that were read and wait to be answered. */
struct input_stream {
	int fd;
	char *buf;
	size_t n; /* bytes in buf */
	size_t cap;
	size_t used;    /* bytes of lines that were handed out */
	uint64_t whole; /* bytes of the file that is read as a whole; 0: there is none */
	bool ended;
};

void input_stream_init(struct input_stream *s, int fd);
void input_stream_deinit(struct input_stream *s);

/* Has a regular file read as a whole; false when the input is none. */
bool input_stream_join_file(struct input_stream *s);

/*
 * Waits for input, then reads until nothing more is ready or 4 MiB are there (of a file that is
 * joined: all); false at the end. What remains of an incomplete line is kept, and at the end counts
 * as one.
 */
bool input_stream_fill(struct input_stream *s);

/* All complete lines that there are, with their ends; the last of the input may lack its own. */
void input_stream_lines(struct input_stream *s, const char **ret_text, size_t *ret_size);

/* The number of lines of @text; what follows the last end is one, too. */
size_t input_count_lines(const char *text, size_t size);

/* The next complete line, without its end; false when there is none yet. */
bool input_stream_line(struct input_stream *s, const char **ret_line, size_t *ret_size);

#endif
