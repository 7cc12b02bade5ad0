/* SPDX-License-Identifier: MIT */
/*
 * The output of the formatter (format.c): a buffer that also counts what does not fit, in bytes and
 * in characters, and the writing of text that needs no argument list.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_SELF_OUTPUT_H
#define FATHOM_SELF_OUTPUT_H

#include "safe/base/bytes.h"

/* Flags of a directive. */
#define FLAG_ZERO  1u
#define FLAG_LEFT  2u
#define FLAG_PLUS  4u
#define FLAG_SPACE 8u
#define FLAG_HASH  16u
#define FLAG_UPPER 32u
#define FLAG_TRUST 64u
#define FLAG_NAME  128u /* internal: a name, whose hidden characters are replaced */

/* Types: the size of a number, and the encoding of text. */
enum fathom_unit {
	UNIT_INT, /* text: UTF-8 */
	UNIT_BOOL,
	UNIT_CHAR,  /* text: code page 437 */
	UNIT_SHORT, /* text: UTF-16 */
	UNIT_LONG,  /* text: wchar_t */
	UNIT_LONG_LONG,
	UNIT_MAX,
	UNIT_SIZE
};

struct fathom_spec {
	uint32_t flags;
	uint32_t width;
	uint32_t precision; /* or NO_PRECISION */
	enum fathom_unit unit;
	char group;  /* between groups of digits; 0: none */
	char letter; /* 0: not a directive */
};

#define NO_PRECISION UINT32_MAX

struct fathom_output {
	char *buf;
	size_t cap;
	size_t len;   /* bytes, with those that did not fit */
	size_t chars; /* characters, likewise */
	char last;    /* last byte */
};

void fathom_out_byte(struct fathom_output *o, char c);
void fathom_out_cstr(struct fathom_output *o, const char *s);
/* Writes a code point as UTF-8; U+FFFD if it is not valid. */
void fathom_out_point(struct fathom_output *o, uint32_t point);
/* Ends the text with a NUL, and marks it if it was cut. */
void fathom_out_end(struct fathom_output *o);

/* Writes the text at @avma as @spec wants it, unpadded. */
void fathom_out_text(struct fathom_output *o, const struct fathom_spec *spec, uint64_t avma);
/* Writes one character as @spec wants it. */
void fathom_out_char(struct fathom_output *o, const struct fathom_spec *spec, uint32_t value);

/* Returns the name of an error; NULL for an unknown number. fathom_signal_name() is public. */
const char *fathom_errno_name(int number);

#endif
