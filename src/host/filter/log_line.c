/* SPDX-License-Identifier: MIT */
#include "host/filter/log_line.h"

#include "host/base/hash.h"
#include "safe/base/bytes.h"

/* Digits of the longest number. */
#define MAX_DIGITS 16

/* Bytes of a line in which its process is looked for. */
#define MAX_PREFIX 96

bool fathom_line_take_hex(struct fathom_log_line *l, uint64_t *ret)
{
	const char *at = l->at;
	uint64_t value = 0;

	for (unsigned digit; at < l->end && (digit = fathom_hex_digit(*at)) < 16; at++)
		value = value << 4 | digit;
	if (at == l->at || at - l->at > MAX_DIGITS)
		return false;
	l->at = at;
	*ret = value;
	return true;
}

bool fathom_line_take_0x(struct fathom_log_line *l, uint64_t *ret)
{
	struct fathom_log_line rest = *l;

	if (!fathom_line_take(&rest, "0x") || !fathom_line_take_hex(&rest, ret))
		return false;
	*l = rest;
	return true;
}

bool fathom_line_take_decimal(struct fathom_log_line *l, uint32_t *ret)
{
	const char *at = l->at;
	uint32_t value = 0;

	for (; at < l->end && *at >= '0' && *at <= '9' && at - l->at < 9; at++)
		value = value * 10 + (uint32_t)(*at - '0');
	if (at == l->at)
		return false;
	l->at = at;
	*ret = value;
	return true;
}

bool fathom_line_find(struct fathom_log_line *l, const char *word)
{
	const char *at = memmem(l->at, fathom_line_left(l), word, strlen(word));

	if (!at)
		return false;
	l->at = at;
	return true;
}

bool fathom_line_find_last(struct fathom_log_line *l, const char *word)
{
	struct fathom_log_line rest = *l;
	const char *last = NULL;

	while (fathom_line_find(&rest, word))
		last = rest.at++;
	if (!last)
		return false;
	l->at = last;
	return true;
}

static bool is_of_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

bool fathom_line_is_word(const char *start, const char *at)
{
	if (at == start || !is_of_word(at[-1]))
		return true;
	if (*--at != 'm')
		return false;
	/* ESC [ numbers m (ECMA-48, SGR) */
	while (at > start && ((at[-1] >= '0' && at[-1] <= '9') || at[-1] == ';'))
		at--;
	return at - start >= 2 && at[-1] == '[' && at[-2] == '\x1b';
}

/* Takes "==PID==" at @l->at. */
static bool take_equals(struct fathom_log_line *l, uint32_t *ret)
{
	return fathom_line_take(l, "==") && fathom_line_take_decimal(l, ret) &&
	       fathom_line_take(l, "==");
}

/*
 * Takes "NAME[PID]:" before and at @l->at, its bracket, of the line from @from, but no list of
 * frames. Adds the name to *@ret: PIDs of containers are few.
 */
static bool take_tag(const char *from, struct fathom_log_line *l, uint64_t *ret)
{
	static const struct fathom_str frame = { "frame", 5 };
	const char *start = l->at;
	struct fathom_str name;
	uint32_t pid;

	while (start > from && start[-1] != ' ')
		start--;
	name = (struct fathom_str){ start, (uint32_t)(l->at - start) };
	l->at++;
	if (!name.size || str_equal(name, frame) || !fathom_line_take_decimal(l, &pid) ||
	    !fathom_line_take(l, "]:"))
		return false;
	*ret = fathom_hash_bytes(pid, name.data, name.size);
	return true;
}

uint64_t fathom_line_process(const char *from, const char *to)
{
	const char *const end = to - from > MAX_PREFIX ? from + MAX_PREFIX : to;

	for (const char *at = from; at < end; at++) {
		struct fathom_log_line l = { at, end };
		uint64_t process;
		uint32_t pid;

		if (*at == '=' && fathom_line_is_word(from, at) && take_equals(&l, &pid))
			return pid;
		if (*at == '[' && take_tag(from, &l, &process))
			return process;
	}
	return 0;
}
