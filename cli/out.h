/* SPDX-License-Identifier: MIT */
/*
 * Standard output, buffered and formatted by hand: a million answers are a gigabyte of text, and
 * stdio would cost more than finding them.
 */
#ifndef FATHOM_CLI_OUT_H
#define FATHOM_CLI_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct out {
	char *buf;
	size_t n;
	size_t cap;
	bool keep;   /* collect everything in buf instead of writing it */
	bool failed; /* what is written is lost: the reader has gone, or */
	bool error;  /* there was an error, which has been printed */
};

/* Both exit on failure: there is nothing to be done without output. */
void out_init(struct out *o);
/* Collects what a second thread formats, to be written behind the output of the first. */
void out_init_kept(struct out *o);
void out_flush(struct out *o);
/* Writes what @o holds, then what @kept has collected, which is empty then. */
void out_join(struct out *o, struct out *kept);
void out_deinit(struct out *o);

/* Makes room for @n more bytes, by writing what is there or by growing. */
void out_make_room(struct out *o, size_t n);

static inline void out_bytes(struct out *o, const char *s, size_t n)
{
	if (n > o->cap - o->n)
		out_make_room(o, n);
	memcpy(o->buf + o->n, s, n);
	o->n += n;
}

static inline void out_str(struct out *o, const char *s)
{
	out_bytes(o, s, strlen(s));
}

static inline void out_char(struct out *o, char c)
{
	if (o->n == o->cap)
		out_make_room(o, 1);
	o->buf[o->n++] = c;
}

void out_hex(struct out *o, uint64_t value); /* with 0x */
void out_dec(struct out *o, uint64_t value);

/*
 * Writes text from a file. Characters that would do something to a terminal, or not be seen there
 * (fathom_point_is_hidden()), are escaped as \x1b, \u202e or \U000e0041; bytes that are no UTF-8 as
 * \xff. So a line stays a line, and different names look different.
 */
void out_text(struct out *o, const char *s, size_t n);

/*
 * Writes the same text as a JSON string with its quotes, with JSON's escapes; bytes that are no
 * UTF-8 become U+FFFD.
 */
void out_json(struct out *o, const char *s, size_t n);
/* Escapes only what JSON must not hold, as other tools do. */
void out_json_as_it_is(struct out *o, const char *s, size_t n);

#endif
