/* SPDX-License-Identifier: MIT */
/*
 * Standard output, buffered and formatted by hand: a million answers are a gigabyte of text, and
 * stdio would cost more than finding them.
 */
#ifndef FATHOM_OUT_H
#define FATHOM_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct out {
	char *buf;
	size_t n;
	bool failed; /* what is written is lost: the reader has gone */
};

/* Exits on failure: there is nothing to be done without output. */
void out_init(struct out *o);
void out_flush(struct out *o);
void out_deinit(struct out *o);

void out_bytes(struct out *o, const char *s, size_t n);
void out_str(struct out *o, const char *s);
void out_char(struct out *o, char c);
void out_hex(struct out *o, uint64_t value); /* with 0x */
void out_dec(struct out *o, uint64_t value);

/* Text from a file: control characters are escaped, so that a line stays a line. */
void out_text(struct out *o, const char *s, size_t n);

/* The same as a JSON string with its quotes; bytes that are not UTF-8 become U+FFFD. */
void out_json(struct out *o, const char *s, size_t n);

#endif
