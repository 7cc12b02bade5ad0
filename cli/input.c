/* SPDX-License-Identifier: MIT */
#include "cli/input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common.h"

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

/* All of @s as a number with or without 0x. */
static bool parse_number(const struct input_rules *rules, const char *s, size_t n, uint64_t *ret)
{
	if (n > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X'))
		return parse_digits(s + 2, n - 2, 16, ret);
	return parse_digits(s, n, rules->decimal ? 10 : 16, ret);
}

/* A word of so many hexadecimal digits, the first a letter, may be a symbol: add, dead, face. */
#define SHORT_WORD 7

/* Whether @s has hexadecimal digits only: more than an address has are no symbol either. */
static bool are_hex_digits(const char *s, size_t n)
{
	while (n && digits[(uint8_t)s[n - 1]])
		n--;
	return !n;
}

/* Longer names are not looked for. */
#define MAX_NAME 4095

/* Reads a word that does not start with a digit. */
static void parse_word(const struct input_rules *rules, struct input *in)
{
	const char *plus;
	size_t length;

	if (!rules->decimal && parse_digits(in->text, in->size, 16, &in->address)) {
		in->kind = in->size > SHORT_WORD ? INPUT_READY : INPUT_EITHER;
		return;
	}
	plus = memrchr(in->text, '+', in->size);
	length = plus ? (size_t)(plus - in->text) : 0;
	in->kind = INPUT_NAME;
	/* A name may hold a plus sign itself (operator+): only a number behind it is an offset. */
	if (length && parse_number(rules, plus + 1, in->size - length - 1, &in->address))
		in->kind = INPUT_NAME_PLUS;
	if (in->size > MAX_NAME || memchr(in->text, '\0', in->size) ||
	    (!rules->decimal && are_hex_digits(in->text, in->size))) {
		in->kind = INPUT_READY;
		in->reason = FATHOM_REASON_BAD_ADDRESS;
	}
}

/* Makes of the number @in->address an address: in a section it is an offset. */
static void place_number(const struct input_rules *rules, struct input *in)
{
	in->kind = INPUT_READY;
	if (rules->section &&
	    fathom_target_section_address(rules->target, rules->section, in->address, &in->address))
		in->reason = FATHOM_REASON_BAD_ADDRESS;
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
	if (size && (text[0] < '0' || text[0] > '9'))
		parse_word(rules, ret);
	else if (!parse_number(rules, text, size, &ret->address))
		ret->reason = FATHOM_REASON_BAD_ADDRESS;
	if (ret->kind == INPUT_READY && !ret->reason)
		place_number(rules, ret);
}

/* The part of @in's text that is a name. */
static size_t name_size(const struct input *in)
{
	return in->kind == INPUT_NAME_PLUS
		       ? (size_t)((const char *)memrchr(in->text, '+', in->size) - in->text)
		       : in->size;
}

/* Takes what the look-up of @in's name has found, or why it has not. */
static void take_symbol(const struct input_rules *rules, struct input *in, uint64_t address,
			uint8_t reason)
{
	if (reason && in->kind == INPUT_EITHER) {
		place_number(rules, in);
		return;
	}
	in->reason = reason;
	if (!reason &&
	    __builtin_add_overflow(address, in->kind == INPUT_NAME_PLUS ? in->address : 0,
				   &in->address))
		in->reason = FATHOM_REASON_BAD_ADDRESS;
	in->kind = INPUT_READY;
}

/* The names of inputs as the library takes them. */
struct names {
	const char **name;
	uint64_t *address;
	uint8_t *reason;
	char *text; /* of all */
	size_t n;
};

static void copy_names(const struct input *inputs, size_t n, struct names *ret)
{
	size_t count = 0;
	size_t bytes = 0;
	char *to;

	for (size_t i = 0; i < n; i++) {
		count += inputs[i].kind != INPUT_READY;
		bytes += inputs[i].kind != INPUT_READY ? name_size(&inputs[i]) + 1 : 0;
	}
	ret->name = must(malloc((count + 1) * sizeof *ret->name));
	ret->address = must(malloc((count + 1) * sizeof *ret->address));
	ret->reason = must(malloc(count + 1));
	ret->text = must(malloc(bytes + 1));
	ret->n = 0;
	to = ret->text;
	for (size_t i = 0; i < n; i++) {
		size_t size;

		if (inputs[i].kind == INPUT_READY)
			continue;
		size = name_size(&inputs[i]);
		memcpy(to, inputs[i].text, size);
		to[size] = '\0';
		ret->name[ret->n++] = to;
		to += size + 1;
	}
}

static void free_names(struct names *names)
{
	free(names->name);
	free(names->address);
	free(names->reason);
	free(names->text);
}

static void exit_with(const struct fathom_errinfo *info)
{
	complain_error(info);
	exit(EXIT_USAGE);
}

void input_resolve(const struct input_rules *rules, struct input *inputs, size_t n)
{
	struct fathom_errinfo info;
	struct names names;
	size_t next = 0;

	copy_names(inputs, n, &names);
	if (names.n && fathom_target_find_symbols(rules->target, names.name, names.n, names.address,
						  names.reason, &info))
		exit_with(&info);
	for (size_t i = 0; i < n; i++)
		if (inputs[i].kind != INPUT_READY) {
			take_symbol(rules, &inputs[i], names.address[next], names.reason[next]);
			next++;
		}
	free_names(&names);
}

/* The addresses that names have. */
struct places {
	struct {
		size_t name;
		uint64_t address;
	} * item;
	size_t n;
	size_t cap;
};

static void take_place(void *data, size_t name, uint64_t address)
{
	struct places *p = data;

	if (p->n == p->cap) {
		p->cap = p->cap ? 2 * p->cap : 64;
		p->item = must(realloc(p->item, p->cap * sizeof *p->item));
	}
	p->item[p->n].name = name;
	p->item[p->n++].address = address;
}

/* Adds to @to, which has room, one input for each address of @in; returns how many. */
static size_t add_places(const struct input_rules *rules, const struct input *in,
			 const struct places *p, size_t first, struct input *to)
{
	size_t n = 0;

	while (first + n < p->n && p->item[first + n].name == p->item[first].name) {
		to[n] = *in;
		take_symbol(rules, &to[n], p->item[first + n].address, FATHOM_REASON_NONE);
		to[n].more = true;
		n++;
	}
	to[n - 1].more = false;
	return n;
}

struct input *input_resolve_all(const struct input_rules *rules, struct input *inputs, size_t n,
				size_t *ret_n)
{
	struct places places = { 0 };
	struct fathom_errinfo info;
	struct names names;
	struct input *all;
	size_t next = 0;
	size_t place = 0;

	copy_names(inputs, n, &names);
	if (names.n && fathom_target_find_all_symbols(rules->target, names.name, names.n,
						      names.reason, take_place, &places, &info))
		exit_with(&info);
	all = must(malloc((n + places.n + 1) * sizeof *all));
	*ret_n = 0;
	for (size_t i = 0; i < n; i++) {
		const size_t name = next;

		next += inputs[i].kind != INPUT_READY;
		if (next != name && !names.reason[name]) {
			const size_t added =
				add_places(rules, &inputs[i], &places, place, all + *ret_n);

			place += added;
			*ret_n += added;
			continue;
		}
		all[*ret_n] = inputs[i];
		if (next != name)
			take_symbol(rules, &all[*ret_n], 0, names.reason[name]);
		++*ret_n;
	}
	free_names(&names);
	free(places.item);
	free(inputs);
	return all;
}

void input_complain(const struct input_rules *rules, const struct input *in, unsigned *count)
{
	struct input again;
	char *name;

	if (in->reason != FATHOM_REASON_NO_SUCH_SYMBOL)
		return;
	input_parse(rules, in->text, in->size, &again);
	name = must(strndup(again.text, name_size(&again)));
	complain_symbol(rules->target, name, count);
	free(name);
}

size_t input_count_lines(const char *text, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < size; i++)
		n += text[i] == '\n';
	return n + (size && text[size - 1] != '\n');
}
