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

/* Whether any of the eight bytes of @w is below 0x20 or is 0x7f. */
static bool has_control(uint64_t w)
{
	const uint64_t ones = 0x0101010101010101u;
	const uint64_t tops = 0x8080808080808080u;
	const uint64_t below = (w - ones * 0x20) & ~w & tops;
	const uint64_t del = w ^ (ones * 0x7f);

	return below || ((del - ones) & ~del & tops);
}

/* The length of the part of @s that needs no escape. */
static size_t plain_length(const char *s, size_t n)
{
	size_t i = 0;
	uint64_t w;

	for (; i + sizeof w <= n; i += sizeof w) {
		memcpy(&w, s + i, sizeof w);
		if (has_control(w))
			break;
	}
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

void out_json(struct out *o, const char *s, size_t n)
{
	size_t start = 0;
	size_t i = 0;

	out_char(o, '"');
	while (i < n) {
		const unsigned char c = (unsigned char)s[i];
		const size_t length = utf8_length((const unsigned char *)s + i, n - i);

		if (length && c >= 0x20 && c != '"' && c != '\\' && c != 0x7f) {
			i += length;
			continue;
		}
		out_bytes(o, s + start, i - start);
		if (length)
			out_json_char(o, c);
		else
			out_str(o, "\xef\xbf\xbd");
		start = ++i;
	}
	out_bytes(o, s + start, n - start);
	out_char(o, '"');
}
