/* SPDX-License-Identifier: MIT */
#include "out.h"

#include <errno.h>
#include <fathom/fathom.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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
	while (n && !o->failed) {
		const ssize_t done = write(STDOUT_FILENO, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0) {
			/* A reader that has seen enough is no error; a full disk is. */
			if (errno != EPIPE) {
				fprintf(stderr, "fathom: standard output: %s\n", strerror(errno));
				o->error = true;
			}
			o->failed = true;
			break;
		}
		p += done;
		n -= (size_t)done;
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

/* Room for one number. */
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

static bool is_control(unsigned char c)
{
	return c < 0x20 || c == 0x7f;
}

static void out_escape(struct out *o, unsigned char c)
{
	static const char digits[] = "0123456789abcdef";

	if (c == '\n' || c == '\t') {
		out_str(o, c == '\n' ? "\\n" : "\\t");
		return;
	}
	out_str(o, "\\x");
	out_char(o, digits[c >> 4]);
	out_char(o, digits[c & 15]);
}

/* 16 bytes that are compared at once: a vector of GNU C. */
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

/* Returns whether the BLOCK bytes at @s hold no control character. Bytes above 0x7f are negative.
 */
static bool is_plain_block(const char *s)
{
	const block b = load_block(s);

	return is_none(((b < 0x20) & (b >= 0)) | (b == 0x7f));
}

/* Returns the length of the part of @s that needs no escape. */
static size_t plain_length(const char *s, size_t n)
{
	size_t i = 0;

	while (n - i >= BLOCK && is_plain_block(s + i))
		i += BLOCK;
	/* The rest together with bytes before it. */
	if (n - i < BLOCK && n >= BLOCK && is_plain_block(s + n - BLOCK))
		return n;
	while (i < n && !is_control((unsigned char)s[i]))
		i++;
	return i;
}

void out_text(struct out *o, const char *s, size_t n)
{
	while (n) {
		const size_t plain = plain_length(s, n);

		out_bytes(o, s, plain);
		s += plain;
		n -= plain;
		if (n) {
			out_escape(o, (unsigned char)*s++);
			n--;
		}
	}
}

/* The length of the UTF-8 sequence at @s (RFC 3629), or 0 when it is none. */
static size_t utf8_length(const unsigned char *s, size_t n)
{
	const unsigned char c = s[0];
	const size_t length = c < 0x80   ? 1
			      : c < 0xc2 ? 0
			      : c < 0xe0 ? 2
			      : c < 0xf0 ? 3
			      : c < 0xf5 ? 4
					 : 0;

	if (!length || length > n)
		return 0;
	for (size_t i = 1; i < length; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((c == 0xe0 && s[1] < 0xa0) || (c == 0xed && s[1] > 0x9f) ||
	    (c == 0xf0 && s[1] < 0x90) || (c == 0xf4 && s[1] > 0x8f))
		return 0;
	return length;
}

static void out_json_char(struct out *o, unsigned char c)
{
	char code[8];

	if (c == '"' || c == '\\') {
		out_char(o, '\\');
		out_char(o, (char)c);
	} else if (c == '\n' || c == '\t' || c == '\r') {
		out_str(o, c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\r");
	} else {
		(void)snprintf(code, sizeof code, "\\u%04x", c);
		out_str(o, code);
	}
}

static bool is_plain_json(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* Returns whether is_plain_json() of all BLOCK bytes at @s. */
static bool is_plain_json_block(const char *s)
{
	const block b = load_block(s);

	return is_none((b < 0x20) | (b == 0x7f) | (b == '"') | (b == '\\'));
}

/* Returns the length of the part of @s that is_plain_json(). */
static size_t plain_json_length(const char *s, size_t n)
{
	size_t i = 0;

	while (n - i >= BLOCK && is_plain_json_block(s + i))
		i += BLOCK;
	/* The rest together with bytes before it. */
	if (n - i < BLOCK && n >= BLOCK && is_plain_json_block(s + n - BLOCK))
		return n;
	while (i < n && is_plain_json((unsigned char)s[i]))
		i++;
	return i;
}

void out_json(struct out *o, const char *s, size_t n)
{
	out_char(o, '"');
	for (;;) {
		const size_t plain = plain_json_length(s, n);
		size_t length;

		out_bytes(o, s, plain);
		s += plain;
		n -= plain;
		if (!n)
			break;
		length = utf8_length((const unsigned char *)s, n);
		if (length > 1)
			out_bytes(o, s, length);
		else if (length)
			out_json_char(o, (unsigned char)*s);
		else
			out_str(o, "\xef\xbf\xbd");
		s += length ? length : 1;
		n -= length ? length : 1;
	}
	out_char(o, '"');
}
