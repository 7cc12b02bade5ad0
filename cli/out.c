/* SPDX-License-Identifier: MIT */
#include "cli/out.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <fathom/fathom.h>

#include "cli/progress_line.h"

#define FIRST_SIZE ((size_t)256 << 10)

static void grow(struct out *o, size_t cap)
{
	o->buf = realloc(o->buf, cap);
	o->cap = cap;
	if (!o->buf) {
		fputs("fathom: out of memory\n", stderr);
		exit(2);
	}
}

void out_init(struct out *o)
{
	*o = (struct out){ 0 };
	grow(o, FIRST_SIZE);
}

void out_init_kept(struct out *o)
{
	out_init(o);
	o->keep = true;
}

void out_deinit(struct out *o)
{
	if (!o->keep)
		out_flush(o);
	free(o->buf);
}

static void write_all(struct out *o, const char *p, size_t n)
{
	if (n)
		progress_clear_for_output();
	while (n && !o->failed) {
		const ssize_t done = write(STDOUT_FILENO, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0) {
			/* A reader that closes the pipe is not an error; a full disk is. */
			if (errno != EPIPE) {
				fprintf(stderr, "fathom: standard output: %s\n", strerror(errno));
				o->error = true;
			}
			o->failed = true;
			break;
		}
		p += done;
		n -= (size_t)done;
		o->n_written += (uint64_t)done;
	}
}

void out_flush(struct out *o)
{
	write_all(o, o->buf, o->n);
	o->n = 0;
}

void out_join(struct out *o, struct out *kept)
{
	out_flush(o);
	write_all(o, kept->buf, kept->n);
	kept->n = 0;
}

void out_make_room(struct out *o, size_t n)
{
	size_t cap = o->cap;

	if (!o->keep)
		out_flush(o);
	while (cap - o->n < n)
		cap *= 2;
	if (cap > o->cap)
		grow(o, cap);
}

void out_begin_part(struct out *o, enum out_part part)
{
	/* Bold, magenta, red, bold red: they can be read on any background. */
	static const char *const begins[] = { "\x1b[1m", "\x1b[35m", "\x1b[31m", "\x1b[31m",
					      "\x1b[1;31m" };

	if (o->is_coloured)
		out_str(o, begins[part]);
}

void out_end_part(struct out *o)
{
	if (o->is_coloured)
		out_str(o, "\x1b[m");
}

/* Returns room for one number. */
static char *number_at(struct out *o)
{
	if (o->cap - o->n < FATHOM_NUMBER_SIZE)
		out_make_room(o, FATHOM_NUMBER_SIZE);
	return o->buf + o->n;
}

void out_hex(struct out *o, uint64_t value)
{
	char *at = number_at(o);

	o->n += fathom_format_hex(at, value);
}

void out_dec(struct out *o, uint64_t value)
{
	char *at = number_at(o);

	o->n += fathom_format_dec(at, value);
}

void out_grouped(struct out *o, uint64_t value, size_t width)
{
	char digits[FATHOM_GROUPED_SIZE];
	const size_t n = fathom_format_grouped(digits, value);

	for (size_t i = n; i < width; i++)
		out_char(o, ' ');
	out_bytes(o, digits, n);
}

/* Bytes compared at once, in a GNU C vector. */
#define BLOCK 16
typedef signed char block __attribute__((vector_size(BLOCK)));

static block load_block(const char *s)
{
	block b;

	memcpy(&b, s, sizeof b);
	return b;
}

/* Returns whether no lane of the comparison @c holds. */
static bool is_none(block c)
{
	uint64_t half[2];

	memcpy(half, &c, sizeof half);
	return !(half[0] | half[1]);
}

/* Returns the length of the part of @s that is plain. */
static inline size_t plain_length(const char *s, size_t n, bool (*is_plain)(unsigned char c),
				  bool (*is_plain_block)(const char *s))
{
	size_t i = 0;

	while (n - i >= BLOCK && is_plain_block(s + i))
		i += BLOCK;
	/* Check the rest together with bytes before it. */
	if (n - i < BLOCK && n >= BLOCK && is_plain_block(s + n - BLOCK))
		return n;
	while (i < n && is_plain((unsigned char)s[i]))
		i++;
	return i;
}

static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f;
}

/* Bytes above 0x7f are negative. */
static bool is_plain_block(const char *s)
{
	const block b = load_block(s);

	return is_none((b < 0x20) | (b == 0x7f));
}

static bool is_plain_json(unsigned char c)
{
	return is_plain(c) && c != '"' && c != '\\';
}

static bool is_plain_json_block(const char *s)
{
	const block b = load_block(s);

	return is_none((b < 0x20) | (b == 0x7f) | (b == '"') | (b == '\\'));
}

/* Letters of the escapes of ClickHouse's TabSeparated; 0: the byte stands for itself. */
static const char tsv_letters[256] = {
	['\b'] = 'b', ['\f'] = 'f', ['\r'] = 'r',  ['\n'] = 'n',
	['\t'] = 't', ['\0'] = '0', ['\''] = '\'', ['\\'] = '\\',
};

static bool is_plain_tsv(unsigned char c)
{
	return !tsv_letters[c];
}

/* Control characters without an escape count as special: they are rare. */
static bool is_plain_tsv_block(const char *s)
{
	const block b = load_block(s);

	return is_none(((b >= 0) & (b < 0x20)) | (b == '\'') | (b == '\\'));
}

void out_tsv(struct out *o, const char *s, size_t n)
{
	for (;;) {
		const size_t plain = plain_length(s, n, is_plain_tsv, is_plain_tsv_block);

		out_bytes(o, s, plain);
		s += plain;
		n -= plain;
		if (!n)
			break;
		out_char(o, '\\');
		out_char(o, tsv_letters[(unsigned char)*s]);
		s++;
		n--;
	}
}

static void out_digits(struct out *o, uint32_t value, int n)
{
	while (n--)
		out_char(o, "0123456789abcdef"[value >> 4 * n & 15]);
}

void out_hex_bytes(struct out *o, const uint8_t *bytes, size_t n, const char *between)
{
	for (size_t i = 0; i < n; i++) {
		out_str(o, i ? between : "");
		out_digits(o, bytes[i], 2);
	}
}

/* Writes @point as an ASCII escape of C and Python. */
static void out_escape(struct out *o, uint32_t point)
{
	if (point == '\n' || point == '\t') {
		out_str(o, point == '\n' ? "\\n" : "\\t");
		return;
	}
	out_str(o, point < 0x80 ? "\\x" : point < 0x10000 ? "\\u" : "\\U");
	out_digits(o, point, point < 0x80 ? 2 : point < 0x10000 ? 4 : 8);
}

void out_text(struct out *o, const char *s, size_t n)
{
	for (;;) {
		const size_t plain = plain_length(s, n, is_plain, is_plain_block);
		uint32_t point;
		size_t size;

		out_bytes(o, s, plain);
		s += plain;
		n -= plain;
		if (!n)
			break;
		size = fathom_point_take(s, n, &point);
		if (point == FATHOM_NO_POINT) {
			size = 1;
			out_str(o, "\\x");
			out_digits(o, (unsigned char)*s, 2);
		} else if (fathom_point_is_hidden(point)) {
			out_escape(o, point);
		} else {
			out_bytes(o, s, size);
		}
		s += size;
		n -= size;
	}
}

/* Writes the JSON escape of a special or hidden character. */
static void out_json_point(struct out *o, uint32_t point)
{
	char escape[FATHOM_JSON_ESCAPE_SIZE];

	out_bytes(o, escape, fathom_point_escape_json(point, escape));
}

/* Returns whether JSON requires an escape for @point. */
static bool is_special(uint32_t point)
{
	return point < 0x20 || point == '"' || point == '\\';
}

/* Writes @s as a JSON string; with @shown, escapes hidden characters, too. */
static void out_json_string(struct out *o, const char *s, size_t n, bool shown)
{
	out_char(o, '"');
	for (;;) {
		const size_t plain = plain_length(s, n, is_plain_json, is_plain_json_block);
		uint32_t point;
		size_t size;

		out_bytes(o, s, plain);
		s += plain;
		n -= plain;
		if (!n)
			break;
		size = fathom_point_take(s, n, &point);
		if (point == FATHOM_NO_POINT)
			out_str(o, "\xef\xbf\xbd");
		else if (is_special(point) || (shown && fathom_point_is_hidden(point)))
			out_json_point(o, point);
		else
			out_bytes(o, s, size);
		s += size;
		n -= size;
	}
	out_char(o, '"');
}

void out_json(struct out *o, const char *s, size_t n)
{
	out_json_string(o, s, n, true);
}

void out_json_as_it_is(struct out *o, const char *s, size_t n)
{
	out_json_string(o, s, n, false);
}
