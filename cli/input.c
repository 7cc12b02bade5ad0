/* SPDX-License-Identifier: MIT */
#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common.h"

/* Value + 1 of each digit, 0 for what is none. */
static const uint8_t digits[256] = {
	['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,
	['6'] = 7,  ['7'] = 8,  ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12,
	['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16, ['A'] = 11, ['B'] = 12,
	['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

/* All of @s, at most 16 characters, as a hexadecimal number. */
static bool parse_hex(const char *s, size_t n, uint64_t *ret)
{
	uint64_t value = 0;
	bool good = true;

	for (size_t i = 0; i < n; i++) {
		const uint8_t digit = digits[(uint8_t)s[i]];

		good &= digit != 0;
		value = value << 4 | (uint8_t)(digit - 1);
	}
	*ret = value;
	return good;
}

/* All of @s as a number in @base; false when it is none or too large. */
static bool parse_digits(const char *s, size_t n, unsigned base, uint64_t *ret)
{
	uint64_t value = 0;

	if (!n)
		return false;
	/* Most are of this form: of millions it can be felt. */
	if (base == 16 && n <= 16)
		return parse_hex(s, n, ret);
	for (size_t i = 0; i < n; i++) {
		const unsigned digit = digits[(uint8_t)s[i]] - 1u;

		if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, digit, &value))
			return false;
	}
	*ret = value;
	return true;
}

enum number { NUMBER_NONE, NUMBER_BAD, NUMBER_GOOD };

/* Tells numbers from names: "0x..." and what starts with a digit is meant as a number. */
static enum number parse_number(const char *s, size_t n, bool hex, uint64_t *ret)
{
	if (n > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X'))
		return parse_digits(s + 2, n - 2, 16, ret) ? NUMBER_GOOD : NUMBER_BAD;
	if (hex && parse_digits(s, n, 16, ret))
		return NUMBER_GOOD;
	if (!n || s[0] < '0' || s[0] > '9')
		return NUMBER_NONE;
	return parse_digits(s, n, 10, ret) ? NUMBER_GOOD : NUMBER_BAD;
}

/* "symbol" or "symbol+offset". */
static uint8_t parse_symbol(const struct input_rules *rules, const char *s, size_t n, uint64_t *ret)
{
	const char *plus = memrchr(s, '+', n);
	char name[4096];
	uint64_t offset = 0;
	size_t length = n;
	fathom_err err;

	/* A name may hold a plus sign itself (operator+): only a number behind it is an offset. */
	if (plus &&
	    parse_number(plus + 1, n - (size_t)(plus - s) - 1, rules->hex, &offset) == NUMBER_GOOD)
		length = (size_t)(plus - s);
	else
		offset = 0;
	if (!length || length >= sizeof name || memchr(s, '\0', length))
		return FATHOM_REASON_BAD_ADDRESS;
	memcpy(name, s, length);
	name[length] = '\0';
	err = fathom_target_find_symbol(rules->target, name, ret);
	if (err == FATHOM_E_CHANGED)
		common_check(rules->target);
	if (err)
		return err == FATHOM_E_OS ? FATHOM_REASON_NO_PERMISSION
					  : FATHOM_REASON_NO_SUCH_SYMBOL;
	return __builtin_add_overflow(*ret, offset, ret) ? FATHOM_REASON_BAD_ADDRESS
							 : FATHOM_REASON_NONE;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

void input_rules_check(struct input_rules *rules, const struct fathom_target_info *info)
{
	if (info->kind != FATHOM_TARGET_FILE && rules->section) {
		complain("--section",
			 info->kind == FATHOM_TARGET_KERNEL ? "the kernel has no sections"
							    : "a process or core has no sections",
			 "give the addresses of its memory, or the file");
		exit(EXIT_USAGE);
	}
	if (info->is_relocatable && !rules->section)
		rules->section = ".text";
}

void input_parse(const struct input_rules *rules, const char *text, size_t size, struct input *ret)
{
	while (size && is_blank(text[0])) {
		text++;
		size--;
	}
	while (size && is_blank(text[size - 1]))
		size--;
	*ret = (struct input){ .text = text, .size = size };
	switch (parse_number(text, size, rules->hex, &ret->address)) {
	case NUMBER_GOOD:
		if (rules->section && fathom_target_section_address(rules->target, rules->section,
								    ret->address, &ret->address))
			ret->reason = FATHOM_REASON_BAD_ADDRESS;
		break;
	case NUMBER_BAD:
		ret->reason = FATHOM_REASON_BAD_ADDRESS;
		break;
	case NUMBER_NONE:
		ret->reason = parse_symbol(rules, text, size, &ret->address);
		break;
	}
}

#define BATCH_BYTES ((size_t)4 << 20)
#define FIRST_CAP   ((size_t)64 << 10)

void input_stream_init(struct input_stream *s, int fd)
{
	*s = (struct input_stream){ .fd = fd };
}

void input_stream_deinit(struct input_stream *s)
{
	free(s->buf);
}

static void make_room(struct input_stream *s, size_t more)
{
	size_t cap = s->cap ? s->cap : FIRST_CAP;
	char *buf;

	if (s->cap - s->n >= more)
		return;
	while (cap - s->n < more)
		cap *= 2;
	buf = realloc(s->buf, cap);
	if (!buf) {
		fputs("fathom: standard input: out of memory\n", stderr);
		exit(2);
	}
	s->buf = buf;
	s->cap = cap;
}

/* Reads once, waiting if need be; false at the end. */
static bool read_some(struct input_stream *s)
{
	ssize_t got;

	make_room(s, FIRST_CAP);
	do
		got = read(s->fd, s->buf + s->n, s->cap - s->n);
	while (got < 0 && errno == EINTR);
	if (got < 0) {
		fprintf(stderr, "fathom: standard input: %s\n", strerror(errno));
		exit(2);
	}
	s->n += (size_t)got;
	s->ended = got == 0;
	return got > 0;
}

static bool is_ready(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

/* The size of the regular file that is read, or 0 when it is none. */
static uint64_t file_size(const struct input_stream *s)
{
	struct stat st;

	return fstat(s->fd, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
}

bool input_stream_join_file(struct input_stream *s)
{
	s->whole = file_size(s);
	return s->whole != 0;
}

bool input_stream_fill(struct input_stream *s)
{
	s->n -= s->used;
	if (s->n)
		memmove(s->buf, s->buf + s->used, s->n);
	s->used = 0;
	if (s->ended)
		return s->n != 0;
	make_room(s, s->whole ? (size_t)s->whole + 1 : FIRST_CAP);
	while (read_some(s))
		if (!s->whole && (s->n >= BATCH_BYTES || !is_ready(s->fd)) &&
		    memchr(s->buf, '\n', s->n))
			break;
	return s->n != 0;
}

bool input_stream_line(struct input_stream *s, const char **ret_line, size_t *ret_size)
{
	const char *line = s->buf + s->used;
	const size_t left = s->n - s->used;
	const char *end = left ? memchr(line, '\n', left) : NULL;

	if (!end && (!s->ended || !left))
		return false;
	*ret_line = line;
	*ret_size = end ? (size_t)(end - line) : left;
	s->used += *ret_size + (end ? 1 : 0);
	return true;
}

void input_stream_lines(struct input_stream *s, const char **ret_text, size_t *ret_size)
{
	const char *text = s->buf + s->used;
	size_t size = s->n - s->used;

	if (!s->ended) {
		const char *end = size ? memrchr(text, '\n', size) : NULL;

		size = end ? (size_t)(end - text) + 1 : 0;
	}
	*ret_text = text;
	*ret_size = size;
	s->used += size;
}

size_t input_count_lines(const char *text, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < size; i++)
		n += text[i] == '\n';
	return n + (size && text[size - 1] != '\n');
}
