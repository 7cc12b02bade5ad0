/* SPDX-License-Identifier: MIT */
#include "host/base/json_reader.h"

#include <string.h>

#include "safe/base/hex.h"
#include "safe/base/utf8.h"

/* The greatest number. */
#define MOST (INT64_C(1) << 62)

void fathom_json_init(struct fathom_json *j, struct fathom_bytes bytes)
{
	*j = (struct fathom_json){ .c = cur_init(bytes, false) };
	/* A byte order mark. */
	if (bytes.size >= 3 && memcmp(bytes.data, "\xef\xbb\xbf", 3) == 0)
		cur_skip(&j->c, 3);
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
	cur_fail(&j->c);
}

static bool is_at_end(const struct fathom_json *j)
{
	return !cur_left(&j->c);
}

/* Returns the next byte, 0 at the end. */
static char peek(const struct fathom_json *j)
{
	return is_at_end(j) ? '\0' : (char)*j->c.p;
}

/* Takes the next byte, which is there. */
static char take(struct fathom_json *j)
{
	return (char)cur_u8(&j->c);
}

/* Takes @c if it is next. */
static bool pass(struct fathom_json *j, char c)
{
	if (is_at_end(j) || peek(j) != c)
		return false;
	(void)take(j);
	return true;
}

/* Skips white space; returns the next byte, 0 at the end. */
static char look(struct fathom_json *j)
{
	while (pass(j, ' ') || pass(j, '\t') || pass(j, '\n') || pass(j, '\r'))
		continue;
	return peek(j);
}

bool fathom_json_enter(struct fathom_json *j, char open)
{
	(void)look(j);
	return pass(j, open);
}

bool fathom_json_next(struct fathom_json *j, char close)
{
	(void)look(j);
	if (is_at_end(j)) {
		fathom_json_refuse(j, "ends too early");
		return false;
	}
	if (pass(j, close))
		return false;
	(void)pass(j, ',');
	return true;
}

static void put(struct fathom_json *j, char c)
{
	j->no_memory |= !fathom_array_push(&j->text, c);
}

/* Puts @point, as UTF-8. */
static void put_point(struct fathom_json *j, uint32_t point)
{
	char bytes[UTF8_MOST];
	const size_t n = utf8_encode(point, bytes);

	for (size_t i = 0; i < n; i++)
		put(j, bytes[i]);
}

/* Takes the four digits of an escape; UINT32_MAX: they are none. */
static uint32_t take_unit(struct fathom_json *j)
{
	uint32_t value = 0;

	for (int i = 0; i < 4; i++) {
		const char c = is_at_end(j) ? '\0' : take(j);
		const uint32_t digit = fathom_hex_digit(c);

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

	if (point >= 0xd800 && point < 0xdc00 && cur_left(&j->c) >= 2 && j->c.p[0] == '\\' &&
	    j->c.p[1] == 'u') {
		uint32_t low;

		cur_skip(&j->c, 2);
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
	while (!is_at_end(j) && peek(j) != '"' && !j->no_memory) {
		const char c = take(j);
		const char *escape;

		if (c != '\\') {
			put(j, c);
			continue;
		}
		if (is_at_end(j))
			break;
		if (pass(j, 'u')) {
			take_point(j);
			continue;
		}
		escape = peek(j) ? strchr(from, peek(j)) : NULL;
		put(j, escape ? to[escape - from] : peek(j));
		(void)take(j);
	}
	if (!pass(j, '"'))
		fathom_json_refuse(j, "ends too early");
	if (j->text.n > UINT32_MAX)
		fathom_json_refuse(j, "has a string that is too long");
	return (struct fathom_str){ j->text.n ? j->text.items : "",
				    j->wrong ? 0 : (uint32_t)j->text.n };
}

struct fathom_str fathom_json_string(struct fathom_json *j)
{
	(void)look(j);
	if (pass(j, '"'))
		return take_string(j);
	fathom_json_skip(j);
	return (struct fathom_str){ "", 0 };
}

struct fathom_str fathom_json_key(struct fathom_json *j)
{
	struct fathom_str key = { "", 0 };

	(void)look(j);
	if (!pass(j, '"')) {
		fathom_json_refuse(j, "has a member without a name");
		return key;
	}
	key = take_string(j);
	(void)look(j);
	if (!pass(j, ':'))
		fathom_json_refuse(j, "has a member without a value");
	return key;
}

static bool is_digit(const struct fathom_json *j)
{
	return peek(j) >= '0' && peek(j) <= '9';
}

/* Takes digits; returns their value, at most MOST. */
static int64_t take_digits(struct fathom_json *j)
{
	int64_t value = 0;

	while (is_digit(j)) {
		const int digit = take(j) - '0';

		value = value < MOST / 10 - 1 ? value * 10 + digit : MOST;
	}
	return value;
}

/* Appends the digits of a fraction to those of *@value, as far as they fit; returns how many. */
static int64_t take_fraction(struct fathom_json *j, int64_t *value)
{
	int64_t n = 0;

	while (is_digit(j)) {
		const int digit = take(j) - '0';

		if (*value < MOST / 10 - 1) {
			*value = *value * 10 + digit;
			n++;
		}
	}
	return n;
}

bool fathom_json_is_number(struct fathom_json *j)
{
	(void)look(j);
	return peek(j) == '-' || is_digit(j);
}

int64_t fathom_json_number(struct fathom_json *j)
{
	bool is_below_one;
	bool is_below;
	int64_t value;
	int64_t power = 0;
	int64_t n = 0;

	if (!fathom_json_is_number(j)) {
		fathom_json_skip(j);
		return 0;
	}
	is_below = pass(j, '-');
	value = take_digits(j);
	if (pass(j, '.'))
		n = take_fraction(j, &value);
	if (pass(j, 'e') || pass(j, 'E')) {
		is_below_one = pass(j, '-');
		(void)(is_below_one || pass(j, '+'));
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
	while (!is_at_end(j) && peek(j) != '"')
		cur_skip(&j->c, peek(j) == '\\' && cur_left(&j->c) > 1 ? 2 : 1);
	if (!pass(j, '"'))
		fathom_json_refuse(j, "ends too early");
}

void fathom_json_skip(struct fathom_json *j)
{
	uint64_t depth = 0;
	uint64_t left;

	(void)look(j);
	left = cur_left(&j->c);
	while (!is_at_end(j)) {
		const char c = peek(j);

		if (!depth && (c == ',' || c == '}' || c == ']' || c == ':'))
			break;
		(void)take(j);
		if (c == '"')
			skip_string(j);
		else if (c == '{' || c == '[')
			depth++;
		else if (c == '}' || c == ']')
			depth--;
		if (!depth && (c == '"' || c == '}' || c == ']'))
			break;
	}
	if (cur_left(&j->c) == left)
		fathom_json_refuse(j, "has no value where one should be");
	else if (depth)
		fathom_json_refuse(j, "ends too early");
}
