/* SPDX-License-Identifier: MIT */
#include "host/exchange/json_reader.h"

#include <string.h>

/* The greatest number. */
#define MOST (INT64_C(1) << 62)

void fathom_json_init(struct fathom_json *j, struct fathom_bytes bytes)
{
	*j = (struct fathom_json){ .p = (const char *)bytes.data,
				   .end = (const char *)bytes.data + bytes.size };
	/* A byte order mark. */
	if (bytes.size >= 3 && memcmp(j->p, "\xef\xbb\xbf", 3) == 0)
		j->p += 3;
}

void fathom_json_deinit(struct fathom_json *j)
{
	fathom_array_free(&j->text);
}

void fathom_json_refuse(struct fathom_json *j, const char *what)
{
	if (j->wrong)
		return;
	j->wrong = what;
	j->end = j->p;
}

/* Skips white space; returns the next byte, 0 at the end. */
static char look(struct fathom_json *j)
{
	while (j->p < j->end && (*j->p == ' ' || *j->p == '\t' || *j->p == '\n' || *j->p == '\r'))
		j->p++;
	return j->p < j->end ? *j->p : 0;
}

bool fathom_json_enter(struct fathom_json *j, char open)
{
	if (look(j) != open || j->p == j->end)
		return false;
	j->p++;
	return true;
}

bool fathom_json_next(struct fathom_json *j, char close)
{
	const char c = look(j);

	if (j->p == j->end) {
		fathom_json_refuse(j, "ends too early");
		return false;
	}
	if (c == close) {
		j->p++;
		return false;
	}
	if (c == ',')
		j->p++;
	return true;
}

static void put(struct fathom_json *j, char c)
{
	j->no_memory |= !fathom_array_push(&j->text, c);
}

/* Puts @point, as UTF-8. */
static void put_point(struct fathom_json *j, uint32_t point)
{
	if (point < 0x80) {
		put(j, (char)point);
		return;
	}
	if (point >= 0x10000) {
		put(j, (char)(0xf0 | point >> 18));
		put(j, (char)(0x80 | (point >> 12 & 0x3f)));
	} else if (point >= 0x800) {
		put(j, (char)(0xe0 | point >> 12));
	}
	put(j, point >= 0x800 ? (char)(0x80 | (point >> 6 & 0x3f)) : (char)(0xc0 | point >> 6));
	put(j, (char)(0x80 | (point & 0x3f)));
}

/* Takes the four digits of an escape; UINT32_MAX: they are none. */
static uint32_t take_unit(struct fathom_json *j)
{
	uint32_t value = 0;

	for (int i = 0; i < 4; i++) {
		const char c = j->p < j->end ? *j->p++ : 0;
		const uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
				       : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
				       : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
							      : 16;

		if (digit > 15)
			return UINT32_MAX;
		value = value << 4 | digit;
	}
	return value;
}

/* Takes what follows "\u": a character, or two surrogates that are one. */
static void take_point(struct fathom_json *j)
{
	uint32_t point = take_unit(j);

	if (point >= 0xd800 && point < 0xdc00 && j->end - j->p >= 2 && j->p[0] == '\\' &&
	    j->p[1] == 'u') {
		uint32_t low;

		j->p += 2;
		low = take_unit(j);
		point = low >= 0xdc00 && low < 0xe000
				? 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00)
				: 0xfffd;
	}
	if (point >= 0xd800 && point < 0xe000)
		point = 0xfffd;
	if (point > 0x10ffff)
		fathom_json_refuse(j, "has an escape that is none");
	else
		put_point(j, point);
}

/* Takes the rest of a string after its quote. */
static struct fathom_str take_string(struct fathom_json *j)
{
	static const char from[] = "nrtbf";
	static const char to[] = "\n\r\t\b\f";

	j->text.n = 0;
	while (j->p < j->end && *j->p != '"' && !j->no_memory) {
		const char c = *j->p++;
		const char *escape;

		if (c != '\\') {
			put(j, c);
			continue;
		}
		if (j->p == j->end)
			break;
		if (*j->p == 'u') {
			j->p++;
			take_point(j);
			continue;
		}
		escape = *j->p ? strchr(from, *j->p) : NULL;
		put(j, escape ? to[escape - from] : *j->p);
		j->p++;
	}
	if (j->p == j->end)
		fathom_json_refuse(j, "ends too early");
	else
		j->p++;
	if (j->text.n > UINT32_MAX)
		fathom_json_refuse(j, "has a string that is too long");
	return (struct fathom_str){ j->text.n ? j->text.items : "",
				    j->wrong ? 0 : (uint32_t)j->text.n };
}

struct fathom_str fathom_json_string(struct fathom_json *j)
{
	if (look(j) != '"') {
		fathom_json_skip(j);
		return (struct fathom_str){ "", 0 };
	}
	j->p++;
	return take_string(j);
}

struct fathom_str fathom_json_key(struct fathom_json *j)
{
	struct fathom_str key = { "", 0 };

	if (look(j) != '"') {
		fathom_json_refuse(j, "has a member without a name");
		return key;
	}
	j->p++;
	key = take_string(j);
	if (look(j) != ':')
		fathom_json_refuse(j, "has a member without a value");
	else
		j->p++;
	return key;
}

static bool is_digit(const struct fathom_json *j)
{
	return j->p < j->end && *j->p >= '0' && *j->p <= '9';
}

/* Takes digits; returns their value, at most MOST. */
static int64_t take_digits(struct fathom_json *j)
{
	int64_t value = 0;

	for (; is_digit(j); j->p++)
		value = value < MOST / 10 - 1 ? value * 10 + (*j->p - '0') : MOST;
	return value;
}

/* Appends the digits of a fraction to those of *@value, as far as they fit; returns how many. */
static int64_t take_fraction(struct fathom_json *j, int64_t *value)
{
	int64_t n = 0;

	for (; is_digit(j); j->p++)
		if (*value < MOST / 10 - 1) {
			*value = *value * 10 + (*j->p - '0');
			n++;
		}
	return n;
}

int64_t fathom_json_number(struct fathom_json *j)
{
	const char c = look(j);
	const bool is_below = c == '-';
	bool is_below_one;
	int64_t value;
	int64_t power = 0;
	int64_t n = 0;

	if (c != '-' && (c < '0' || c > '9')) {
		fathom_json_skip(j);
		return 0;
	}
	j->p += is_below;
	value = take_digits(j);
	if (j->p < j->end && *j->p == '.') {
		j->p++;
		n = take_fraction(j, &value);
	}
	if (j->p < j->end && (*j->p == 'e' || *j->p == 'E')) {
		j->p++;
		is_below_one = j->p < j->end && *j->p == '-';
		if (j->p < j->end && (*j->p == '-' || *j->p == '+'))
			j->p++;
		power = is_below_one ? -take_digits(j) : take_digits(j);
	}
	for (power -= n; power < 0 && value; power++)
		value /= 10;
	for (; power > 0 && value && value < MOST; power--)
		value = value < MOST / 10 ? value * 10 : MOST;
	return is_below ? -value : value;
}

/* Skips the rest of a string after its quote. */
static void skip_string(struct fathom_json *j)
{
	while (j->p < j->end && *j->p != '"')
		j->p += *j->p == '\\' && j->end - j->p > 1 ? 2 : 1;
	if (j->p == j->end)
		fathom_json_refuse(j, "ends too early");
	else
		j->p++;
}

void fathom_json_skip(struct fathom_json *j)
{
	const char *first;
	uint64_t depth = 0;

	(void)look(j);
	first = j->p;
	while (j->p < j->end) {
		const char c = *j->p;

		if (!depth && (c == ',' || c == '}' || c == ']' || c == ':'))
			break;
		j->p++;
		if (c == '"')
			skip_string(j);
		else if (c == '{' || c == '[')
			depth++;
		else if (c == '}' || c == ']')
			depth--;
		if (!depth && (c == '"' || c == '}' || c == ']'))
			break;
	}
	if (j->p == first)
		fathom_json_refuse(j, "has no value where one should be");
	else if (depth)
		fathom_json_refuse(j, "ends too early");
}
