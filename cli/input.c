/* SPDX-License-Identifier: MIT */
#include "cli/input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common.h"
#include "cli/inlined.h"

/* Value + 1 of each digit; 0 for other characters. */
static const uint8_t digits[256] = {
	['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,
	['6'] = 7,  ['7'] = 8,  ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12,
	['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16, ['A'] = 11, ['B'] = 12,
	['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

/* Parses all of @s, at most 16 characters, as a hexadecimal number. */
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

/* Parses all of @s as a number in @base; returns false if it is not one or too large. */
static bool parse_digits(const char *s, size_t n, unsigned base, uint64_t *ret)
{
	uint64_t value = 0;

	if (!n)
		return false;
	/* The fast path for the usual form. */
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

/* Parses all of @s as a number with or without 0x. */
static bool parse_number(const struct input_rules *rules, const char *s, size_t n, uint64_t *ret)
{
	if (n > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X'))
		return parse_digits(s + 2, n - 2, 16, ret);
	return parse_digits(s, n, rules->decimal ? 10 : 16, ret);
}

/* Longest word of hexadecimal digits, the first a letter, that may be a symbol: add, dead, face. */
#define SHORT_WORD 7

/* Returns whether @s has only hexadecimal digits, even if too many for an address. */
static bool are_hex_digits(const char *s, size_t n)
{
	while (n && digits[(uint8_t)s[n - 1]])
		n--;
	return !n;
}

/* Longer names are not looked up. */
#define MAX_NAME 4095

/* Parses a word that does not start with a digit. */
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
	/* Names may contain a plus sign (operator+): only a number after it is an offset. */
	if (length && parse_number(rules, plus + 1, in->size - length - 1, &in->address))
		in->kind = INPUT_NAME_PLUS;
	if (in->size > MAX_NAME || memchr(in->text, '\0', in->size) ||
	    (!rules->decimal && are_hex_digits(in->text, in->size))) {
		in->kind = INPUT_READY;
		in->reason = FATHOM_REASON_BAD_ADDRESS;
	}
}

/* Turns the number in @in->address into an address: with a section, it is an offset. */
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
	*ret = (struct input){ .text = text,
			       .size = size < UINT32_MAX ? (uint32_t)size : UINT32_MAX };
	if (size && (text[0] < '0' || text[0] > '9'))
		parse_word(rules, ret);
	else if (!parse_number(rules, text, size, &ret->address))
		ret->reason = FATHOM_REASON_BAD_ADDRESS;
	if (ret->kind == INPUT_READY && !ret->reason)
		place_number(rules, ret);
}

/* Returns the length of the name in @in's text. */
static size_t name_size(const struct input *in)
{
	return in->kind == INPUT_NAME_PLUS
		       ? (size_t)((const char *)memrchr(in->text, '+', in->size) - in->text)
		       : in->size;
}

/* Stores the result of looking up @in's name: the address or the reason. */
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

/* Names of inputs, for the library. */
struct names {
	const char **name;
	size_t *input; /* index of each name's input */
	uint8_t *reason;
	char *text; /* of all names */
	size_t n;
};

/* Copies the names of the inputs that may be numbers if @either, else the other names. */
static void copy_names(const struct input *inputs, size_t n, bool either, struct names *ret)
{
	size_t count = 0;
	size_t bytes = 0;
	char *to;

	for (size_t i = 0; i < n; i++)
		if (inputs[i].kind != INPUT_READY && (inputs[i].kind == INPUT_EITHER) == either) {
			count++;
			bytes += name_size(&inputs[i]) + 1;
		}
	*ret = (struct names){ .n = 0 };
	if (!count)
		return;
	ret->name = must(malloc(count * sizeof *ret->name));
	ret->input = must(malloc(count * sizeof *ret->input));
	ret->reason = must(malloc(count));
	ret->text = must(malloc(bytes));
	to = ret->text;
	for (size_t i = 0; i < n; i++) {
		size_t size;

		if (inputs[i].kind == INPUT_READY || (inputs[i].kind == INPUT_EITHER) != either)
			continue;
		size = name_size(&inputs[i]);
		memcpy(to, inputs[i].text, size);
		to[size] = '\0';
		ret->name[ret->n] = to;
		ret->input[ret->n++] = i;
		to += size + 1;
	}
}

static void free_names(struct names *names)
{
	free(names->name);
	free(names->input);
	free(names->reason);
	free(names->text);
}

/* The addresses of names. */
struct places {
	uint64_t *address;
	size_t n;
	size_t cap;
	struct {
		size_t first; /* index in address */
		size_t n;
	} *of;               /* of each input; NULL: none has a name */
	const size_t *input; /* index of each looked-up name's input */
};

static void take_place(void *data, size_t name, uint64_t address)
{
	struct places *p = data;
	const size_t input = p->input[name];

	if (p->n == p->cap) {
		p->cap = p->cap ? 2 * p->cap : 64;
		p->address = must(realloc(p->address, p->cap * sizeof *p->address));
	}
	if (!p->of[input].n)
		p->of[input].first = p->n;
	p->address[p->n++] = address;
	p->of[input].n++;
}

/*
 * Looks up the names; those of inputs that may be numbers, by linkage name only. Exits on failure.
 */
static void look_up(const struct input_rules *rules, struct input *inputs, size_t n, bool either,
		    struct places *p)
{
	struct fathom_errinfo info;
	struct names names;

	copy_names(inputs, n, either, &names);
	if (names.n && !p->of)
		p->of = must(calloc(n, sizeof *p->of));
	p->input = names.input;
	if (names.n && fathom_target_find_all_symbols(
			       rules->target, either ? FATHOM_FIND_LINKED : 0, names.name, names.n,
			       names.reason, take_place, p, &info)) {
		complain_error(&info);
		exit(EXIT_USAGE);
	}
	for (size_t i = 0; i < names.n; i++)
		if (names.reason[i])
			take_symbol(rules, &inputs[names.input[i]], 0, names.reason[i]);
	free_names(&names);
}

static void look_up_all(const struct input_rules *rules, struct input *inputs, size_t n,
			struct places *p)
{
	look_up(rules, inputs, n, true, p);
	look_up(rules, inputs, n, false, p);
}

void input_resolve(const struct input_rules *rules, struct input *inputs, size_t n)
{
	struct places p = { .n = 0 };

	look_up_all(rules, inputs, n, &p);
	for (size_t i = 0; p.of && i < n; i++)
		if (p.of[i].n)
			take_symbol(rules, &inputs[i], p.address[p.of[i].first],
				    FATHOM_REASON_NONE);
	free(p.address);
	free(p.of);
}

struct input *input_resolve_all(const struct input_rules *rules, struct input *inputs, size_t n,
				size_t *ret_n)
{
	struct places p = { .n = 0 };
	struct input *all;

	*ret_n = n;
	look_up_all(rules, inputs, n, &p);
	if (!p.of)
		return inputs;
	all = must(malloc((n + p.n + 1) * sizeof *all));
	*ret_n = 0;
	for (size_t i = 0; i < n; i++) {
		if (!p.of[i].n)
			all[(*ret_n)++] = inputs[i];
		for (size_t k = 0; k < p.of[i].n; k++) {
			struct input *to = &all[(*ret_n)++];

			*to = inputs[i];
			take_symbol(rules, to, p.address[p.of[i].first + k], FATHOM_REASON_NONE);
			to->more = k + 1 < p.of[i].n;
		}
	}
	free(p.address);
	free(p.of);
	free(inputs);
	return all;
}

/* Returns the name of @in, a symbol that was not found; NULL if that is not its reason. */
static char *missing_name(const struct input_rules *rules, const struct input *in)
{
	struct input again;

	if (in->reason != FATHOM_REASON_NO_SUCH_SYMBOL)
		return NULL;
	input_parse(rules, in->text, in->size, &again);
	return must(strndup(again.text, name_size(&again)));
}

void input_copies_json(const struct input_rules *rules, const struct input *in, struct out *o,
		       unsigned *count)
{
	char *name = missing_name(rules, in);

	if (name && ++*count <= COMMON_NEAR_NAMES)
		inlined_json(o, rules->target, name);
	free(name);
}

void input_complain(const struct input_rules *rules, const struct input *in, unsigned *count)
{
	char *name = missing_name(rules, in);

	if (name)
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
