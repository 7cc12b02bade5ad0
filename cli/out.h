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
	uint64_t n_written; /* bytes that were written out */
	bool keep;          /* collect everything in buf instead of writing it */
	bool failed;        /* output is lost: broken pipe or error */
	bool error;         /* a write error occurred and was reported */
	bool is_coloured;   /* parts of it have colours: out_begin_part() */
};

/* Both functions exit on failure. */
void out_init(struct out *o);
/* Makes an output that collects the text of a second thread, for out_join(). */
void out_init_kept(struct out *o);
void out_flush(struct out *o);
/* Writes @o, then the text collected in @kept, and empties @kept. */
void out_join(struct out *o, struct out *kept);
void out_deinit(struct out *o);

/* Makes room for @n more bytes: writes the buffer out, or grows it. */
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

/* Parts of text that have a colour. */
enum out_part {
	OUT_NAME, /* of a function or symbol */
	OUT_FILE, /* and its line */
	OUT_REASON,
	OUT_WARM, /* numbers that are worth a look */
	OUT_HOT
};

/*
 * Begin and end a part in colour: writes sequences of a terminal (SGR, ECMA-48 8.3.117), nothing in
 * output without colour. Parts do not nest, and do not reach over the end of a line.
 */
void out_begin_part(struct out *o, enum out_part part);
void out_end_part(struct out *o);

void out_hex(struct out *o, uint64_t value); /* with 0x */
void out_dec(struct out *o, uint64_t value);
/* In groups of three digits, right-aligned in @width columns. */
void out_grouped(struct out *o, uint64_t value, size_t width);
/* Writes two digits for each of @n bytes, and @between between them. */
void out_hex_bytes(struct out *o, const uint8_t *bytes, size_t n, const char *between);

/*
 * Writes untrusted text. Escapes characters that would control a terminal or be invisible
 * (fathom_point_is_hidden()) as \x1b, \u202e or \U000e0041, and bytes that are not UTF-8 as \xff.
 * So a line stays a line, and different names look different.
 */
void out_text(struct out *o, const char *s, size_t n);

/*
 * Writes text with the escapes of ClickHouse's TabSeparated: backslashes before b f r n t 0 ' and
 * the backslash itself. All other bytes are as they are.
 */
void out_tsv(struct out *o, const char *s, size_t n);

/*
 * Writes untrusted text as a quoted JSON string with JSON's escapes; bytes that are not UTF-8
 * become U+FFFD.
 */
void out_json(struct out *o, const char *s, size_t n);
/* Writes a JSON string and escapes only what JSON requires, as other tools do. */
void out_json_as_it_is(struct out *o, const char *s, size_t n);

#endif
