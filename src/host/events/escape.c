/* SPDX-License-Identifier: MIT */
#include "host/events/escape.h"

#include "fathom/format.h"

static void put_hex(struct fathom_trace_writer *w, uint32_t value, int digits)
{
	while (digits--)
		fathom_writer_bytes(w, &"0123456789abcdef"[value >> 4 * digits & 15], 1);
}

/* Appends the escape of the hidden character @point. */
static void put_hidden(struct fathom_trace_writer *w, const struct fathom_escape *how,
		       uint32_t point)
{
	fathom_writer_str(w, how->begin);
	if (point == '\n' || point == '\t') {
		fathom_writer_str(w, point == '\n' ? "n" : "t");
		return;
	}
	fathom_writer_str(w, point < 0x80 ? "x" : point < 0x10000 ? "u" : "U");
	put_hex(w, point, point < 0x80 ? 2 : point < 0x10000 ? 4 : 8);
}

/* Appends the first character of @s, of @n bytes; returns its length. */
static size_t put_character(struct fathom_trace_writer *w, const struct fathom_escape *how,
			    const char *s, size_t n)
{
	uint32_t point;
	const size_t size = fathom_point_take(s, n, &point);
	const char *instead;

	if (point == FATHOM_NO_POINT) {
		fathom_writer_str(w, how->begin);
		fathom_writer_str(w, "x");
		put_hex(w, (unsigned char)*s, 2);
		return 1;
	}
	instead = how->instead ? how->instead(s, n) : NULL;
	if (instead)
		fathom_writer_str(w, instead);
	else if (fathom_point_is_hidden(point))
		put_hidden(w, how, point);
	else
		fathom_writer_bytes(w, s, size);
	return size;
}

void fathom_escape_name(struct fathom_trace_writer *w, const struct fathom_escape *how,
			const char *name)
{
	size_t n = strlen(name);

	while (n) {
		const size_t size = put_character(w, how, name, n);

		name += size;
		n -= size;
	}
}

static bool append(struct fathom_bytes_array *to, const char *s, size_t n)
{
	if (!fathom_array_room(to, n))
		return false;
	memcpy(to->items + to->n, s, n);
	to->n += n;
	return true;
}

bool fathom_escape_utf8(struct fathom_bytes_array *to, const char *s)
{
	bool is_done = true;
	uint32_t point;

	to->n = 0;
	for (size_t n = strlen(s); n && is_done;) {
		const size_t size = fathom_point_take(s, n, &point);

		is_done = point == FATHOM_NO_POINT ? append(to, "\xef\xbf\xbd", 3)
						   : append(to, s, size);
		s += size;
		n -= size;
	}
	return is_done && append(to, "", 1);
}

void fathom_escape_spaces(struct fathom_trace_writer *w, size_t n)
{
	while (n--)
		fathom_writer_bytes(w, " ", 1);
}

void fathom_escape_number(struct fathom_trace_writer *w, uint64_t value, size_t width)
{
	char digits[FATHOM_GROUPED_SIZE];
	const size_t n = fathom_format_grouped(digits, value);

	if (n < width)
		fathom_escape_spaces(w, width - n);
	fathom_writer_bytes(w, digits, n);
}
