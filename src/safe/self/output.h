/* SPDX-License-Identifier: MIT */
/*
 * What a directive of the formatter (format.c) writes to: a buffer that counts what does not fit,
 * as bytes and as characters; and the parts of text that do not need the directive's arguments.
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
#define FLAG_NAME  128u /* of no directive: a name, in which nothing hidden is written */

/* Types: the size of a number, and what text consists of. */
enum fathom_unit {
	UNIT_INT, /* and UTF-8 */
	UNIT_BOOL,
	UNIT_CHAR,  /* and code page 437 */
	UNIT_SHORT, /* and UTF-16 */
	UNIT_LONG,  /* and wchar_t */
	UNIT_LONG_LONG,
	UNIT_MAX,
	UNIT_SIZE
};

struct fathom_spec {
	uint32_t flags;
	uint32_t width;
	uint32_t precision; /* NO_PRECISION: none */
	enum fathom_unit unit;
	char group;  /* stands between groups of digits; 0: nothing */
	char letter; /* 0: this is no directive */
};

#define NO_PRECISION UINT32_MAX

struct fathom_out {
	char *buf;
	size_t cap;
	size_t len;   /* bytes, also those that did not fit */
	size_t chars; /* the same in characters */
	char last;    /* byte */
};

void fathom_out_byte(struct fathom_out *o, char c);
void fathom_out_cstr(struct fathom_out *o, const char *s);
/* A code point as UTF-8; what is none is U+FFFD. */
void fathom_out_point(struct fathom_out *o, uint32_t point);
/* Puts the NUL; marks text that was cut. */
void fathom_out_end(struct fathom_out *o);

/* The text at @avma, as @spec wants it; unpadded. */
void fathom_out_text(struct fathom_out *o, const struct fathom_spec *spec, uint64_t avma);
/* One character. */
void fathom_out_char(struct fathom_out *o, const struct fathom_spec *spec, uint32_t value);

/* Names of errors and signals; NULL where there is none. */
const char *fathom_errno_name(int number);
const char *fathom_signal_name(int number);

#endif
