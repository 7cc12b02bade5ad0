/* SPDX-License-Identifier: MIT */
#include "input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

size_t input_count_lines(const char *text, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < size; i++)
		n += text[i] == '\n';
	return n + (size && text[size - 1] != '\n');
}
