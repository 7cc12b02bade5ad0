/* SPDX-License-Identifier: MIT */
#include "host/exchange/svg_text.h"

#include <stdio.h>
#include <stdlib.h>

#include "fathom/format.h"
#include "host/events/escape.h"

/* From here on characters may be taken from fonts in which they are wider. */
#define FIRST_WIDE 0x1100
/* Columns that are left of a name at least. */
#define LEAST_CUT 3

/* Replaces what XML has a meaning for, or forbids though it is a character. */
static const char *instead(const char *s, size_t n)
{
	uint32_t point;

	(void)fathom_point_take(s, n, &point);
	switch (point) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case 0xfffe:
		return "\\ufffe";
	case 0xffff:
		return "\\uffff";
	default:
		return NULL;
	}
}

static const struct fathom_escape xml = { "\\", instead };

/* Returns the columns that @point takes, as fathom_escape_name() writes it. */
static size_t columns_of(uint32_t point)
{
	if (point == FATHOM_NO_POINT)
		return sizeof "\\x00" - 1;
	if (point == '\n' || point == '\t')
		return sizeof "\\n" - 1;
	if (point == 0xfffe || point == 0xffff)
		return sizeof "\\ufffe" - 1;
	if (fathom_point_is_hidden(point))
		return point < 0x80      ? sizeof "\\x00" - 1
		       : point < 0x10000 ? sizeof "\\u0000" - 1
					 : sizeof "\\U00000000" - 1;
	return point < FIRST_WIDE ? 1 : 2;
}

/* Returns the bytes of @text that fit @columns, and how many of these they take in *@ret_used. */
static size_t fitting(const char *text, size_t size, size_t columns, size_t *ret_used)
{
	size_t more;

	*ret_used = 0;
	for (size_t at = 0, n; at < size; at += n, *ret_used += more) {
		uint32_t point;

		n = fathom_point_take(text + at, size - at, &point);
		/* Each byte that is no text has an escape of its own. */
		n = point == FATHOM_NO_POINT ? 1 : n;
		more = columns_of(point);
		if (*ret_used + more > columns)
			return at;
	}
	return size;
}

bool fathom_svg_text(struct fathom_trace_writer *w, const char *text, size_t columns)
{
	const size_t size = strlen(text);
	size_t used;
	size_t cut = fitting(text, size, columns, &used);
	char *copy;

	if (cut == size) {
		fathom_escape_name(w, &xml, text);
		return true;
	}
	/* One column is that of the ellipsis. */
	cut = columns ? fitting(text, size, columns - 1, &used) : 0;
	if (!cut || used < LEAST_CUT)
		return false;
	copy = strndup(text, cut);
	if (!copy) {
		w->no_memory = true;
		return false;
	}
	fathom_escape_name(w, &xml, copy);
	fathom_writer_str(w, "\xe2\x80\xa6");
	free(copy);
	return true;
}

void fathom_svg_pixels(struct fathom_trace_writer *w, double value)
{
	const uint64_t thousandths = (uint64_t)(value * 1000 + 0.5);
	const unsigned rest = (unsigned)(thousandths % 1000);
	const char decimals[] = { '.', (char)('0' + rest / 100), (char)('0' + rest / 10 % 10),
				  (char)('0' + rest % 10) };

	fathom_writer_dec(w, thousandths / 1000);
	if (rest)
		fathom_writer_bytes(w, decimals, sizeof decimals);
}

void fathom_svg_attribute(struct fathom_trace_writer *w, const char *attribute, double value)
{
	fathom_writer_str(w, " ");
	fathom_writer_str(w, attribute);
	fathom_writer_str(w, "=\"");
	fathom_svg_pixels(w, value);
	fathom_writer_str(w, "\"");
}

/* The decimal point is no comma, whatever the locale of the program. */
static const char *fixed(char *to, size_t size, uint64_t hundredths, const char *unit)
{
	(void)snprintf(to, size, "%llu.%02u%s", (unsigned long long)(hundredths / 100),
		       (unsigned)(hundredths % 100), unit);
	return to;
}

const char *fathom_svg_weight(char to[FATHOM_SVG_WEIGHT_SIZE], uint64_t weight, bool is_time)
{
	static const char *const times[] = { " ns", " us", " ms", " s" };
	static const char *const counts[] = { "", " k", " M", " G", " T", " P", " E" };
	const char *const *units = is_time ? times : counts;
	const size_t most = (is_time ? sizeof times : sizeof counts) / sizeof *times - 1;
	uint64_t unit = 1;
	size_t i = 0;

	for (; weight / unit >= 1000 && i < most; i++)
		unit *= 1000;
	if (i == 0)
		(void)snprintf(to, FATHOM_SVG_WEIGHT_SIZE, "%llu%s", (unsigned long long)weight,
			       units[0]);
	else
		(void)fixed(to, FATHOM_SVG_WEIGHT_SIZE,
			    (uint64_t)((double)weight / (double)unit * 100 + 0.5), units[i]);
	return to;
}

const char *fathom_svg_percent(char to[FATHOM_SVG_WEIGHT_SIZE], uint64_t part, uint64_t whole)
{
	const double share = whole ? (double)part / (double)whole : 0;

	return fixed(to, FATHOM_SVG_WEIGHT_SIZE, (uint64_t)(share * 10000 + 0.5), " %");
}
