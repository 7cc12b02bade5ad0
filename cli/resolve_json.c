/* SPDX-License-Identifier: MIT */
#include "cli/resolve_json.h"
#include "cli/characters.h"

#include <string.h>

/* Stands for half of a pair of UTF-16 without the other. */
#define REPLACEMENT 0xfffdu

static bool wrong(struct row_json *j)
{
	j->is_wrong = true;
	j->at = j->end;
	return false;
}

static void skip_blanks(struct row_json *j)
{
	while (j->at < j->end && (*j->at == ' ' || *j->at == '\t' || *j->at == '\r'))
		j->at++;
}

/* Takes @c, after blanks, if it is next. */
static bool take(struct row_json *j, char c)
{
	skip_blanks(j);
	if (j->at == j->end || *j->at != c)
		return false;
	j->at++;
	return true;
}

/* Reads four hexadecimal digits; returns false if they are not there. */
static bool take_unit(struct row_json *j, uint32_t *ret)
{
	uint32_t value = 0;

	if (j->end - j->at < 4)
		return wrong(j);
	for (int i = 0; i < 4; i++) {
		const unsigned digit = digit_of(*j->at++);

		if (digit > 15)
			return wrong(j);
		value = value << 4 | digit;
	}
	*ret = value;
	return true;
}

/* Writes @point as UTF-8 to @to, which its escape has room for. */
static char *put_point(char *to, uint32_t point)
{
	if (point < 0x80) {
		*to++ = (char)point;
		return to;
	}
	if (point < 0x800) {
		*to++ = (char)(0xc0 | point >> 6);
	} else if (point < 0x10000) {
		*to++ = (char)(0xe0 | point >> 12);
		*to++ = (char)(0x80 | (point >> 6 & 0x3f));
	} else {
		*to++ = (char)(0xf0 | point >> 18);
		*to++ = (char)(0x80 | (point >> 12 & 0x3f));
		*to++ = (char)(0x80 | (point >> 6 & 0x3f));
	}
	*to++ = (char)(0x80 | (point & 0x3f));
	return to;
}

/* Decodes the escape \u of one character, or of both halves of one, to @to. */
static char *take_point(struct row_json *j, char *to)
{
	uint32_t unit;
	uint32_t low;

	if (!take_unit(j, &unit))
		return to;
	if (unit >= 0xd800 && unit < 0xdc00 && j->end - j->at >= 6 && j->at[0] == '\\' &&
	    j->at[1] == 'u') {
		char *const before = j->at;

		j->at += 2;
		if (!take_unit(j, &low))
			return to;
		if (low >= 0xdc00 && low < 0xe000)
			return put_point(to, 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00));
		j->at = before;
	}
	return put_point(to, unit >= 0xd800 && unit < 0xe000 ? REPLACEMENT : unit);
}

/* Decodes the escape after a backslash to @to. */
static char *take_escape(struct row_json *j, char *to)
{
	static const char letters[] = "\"\\/bfnrt";
	static const char bytes[] = "\"\\/\b\f\n\r\t";
	const char *at;

	if (j->at == j->end) {
		(void)wrong(j);
		return to;
	}
	if (*j->at == 'u') {
		j->at++;
		return take_point(j, to);
	}
	at = *j->at ? strchr(letters, *j->at) : NULL;
	if (!at) {
		(void)wrong(j);
		return to;
	}
	j->at++;
	*to++ = bytes[at - letters];
	return to;
}

/* Reads a string after its first quote. */
static bool take_string(struct row_json *j, struct row_text *ret)
{
	char *const begin = j->at;
	char *to = begin;

	while (j->at < j->end && *j->at != '"') {
		if (*j->at == '\\') {
			j->at++;
			to = take_escape(j, to);
		} else {
			*to++ = *j->at++;
		}
	}
	if (j->is_wrong || j->at == j->end)
		return wrong(j);
	j->at++;
	*ret = (struct row_text){ begin, (uint32_t)(to - begin), true };
	return true;
}

/* Passes over the string whose first quote is next. */
static void skip_string(struct row_json *j)
{
	for (j->at++; j->at < j->end && *j->at != '"'; j->at++)
		if (*j->at == '\\' && j->at + 1 < j->end)
			j->at++;
	if (j->at < j->end)
		j->at++;
}

/* Passes over an object or array, which is next. */
static bool skip_nested(struct row_json *j)
{
	size_t depth = 0;

	while (j->at < j->end) {
		const char c = *j->at;

		if (c == '"') {
			skip_string(j);
			continue;
		}
		j->at++;
		if (c == '{' || c == '[')
			depth++;
		else if ((c == '}' || c == ']') && !--depth)
			return true;
	}
	return wrong(j);
}

/* Reads a number or a word. */
static bool take_word(struct row_json *j, struct row_text *ret)
{
	char *const begin = j->at;

	while (j->at < j->end && !strchr(",}] \t\r\"{[:", *j->at))
		j->at++;
	*ret = (struct row_text){ begin, (uint32_t)(j->at - begin), false };
	if (j->at == begin)
		return wrong(j);
	if (ret->size == 4 && memcmp(begin, "null", 4) == 0)
		*ret = (struct row_text){ NULL, 0, false };
	return true;
}

static bool take_value(struct row_json *j, struct row_text *ret)
{
	*ret = (struct row_text){ NULL, 0, false };
	if (take(j, '"'))
		return take_string(j, ret);
	if (j->at < j->end && (*j->at == '{' || *j->at == '['))
		return skip_nested(j);
	return take_word(j, ret);
}

bool row_json_begin(struct row_json *j)
{
	return take(j, '{') || wrong(j);
}

bool row_json_next(struct row_json *j, struct row_text *ret_name, struct row_text *ret_value)
{
	if (j->is_wrong || take(j, '}'))
		return false;
	if (!take(j, '"') || !take_string(j, ret_name) || !take(j, ':') ||
	    !take_value(j, ret_value))
		return wrong(j);
	/* The end stays: the next call finds it. */
	if (take(j, ',')) {
		skip_blanks(j);
		return (j->at < j->end && *j->at == '"') || wrong(j);
	}
	return (j->at < j->end && *j->at == '}') || wrong(j);
}

bool row_json_is_end(struct row_json *j)
{
	skip_blanks(j);
	return j->at == j->end;
}
