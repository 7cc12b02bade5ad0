/* SPDX-License-Identifier: MIT */
#include "cli/compat/llvm/request.h"

#include <string.h>

#include "cli/characters.h"

/* Returns whether @c ends a word. Tabs do not: they may be part of names. */
static bool is_delimiter(char c)
{
	return c == ' ' || c == '\n' || c == '\r';
}

static void skip(struct llvm_text *s, size_t n)
{
	s->data += n;
	s->size -= n;
}

static void trim_start(struct llvm_text *s)
{
	while (s->size && is_space(s->data[0]))
		skip(s, 1);
}

static bool take_prefix(struct llvm_text *s, const char *prefix)
{
	const size_t n = strlen(prefix);

	if (s->size < n || memcmp(s->data, prefix, n) != 0)
		return false;
	skip(s, n);
	return true;
}

/*
 * Takes the next word or quoted text; returns empty text if there is none or a quote is not closed.
 */
static struct llvm_text take_word(struct llvm_text *s)
{
	struct llvm_text word = { s->data, 0 };

	while (s->size && is_delimiter(s->data[0]))
		skip(s, 1);
	if (s->size && (s->data[0] == '"' || s->data[0] == '\'')) {
		const char *end = memchr(s->data + 1, s->data[0], s->size - 1);

		if (!end)
			return word;
		word = (struct llvm_text){ s->data + 1, (size_t)(end - s->data - 1) };
		skip(s, word.size + 2);
		return word;
	}
	word.data = s->data;
	while (word.size < s->size && !is_delimiter(s->data[word.size]))
		word.size++;
	skip(s, word.size);
	return word;
}

static unsigned take_base(struct llvm_text *s)
{
	if (take_prefix(s, "0x") || take_prefix(s, "0X"))
		return 16;
	if (take_prefix(s, "0b") || take_prefix(s, "0B"))
		return 2;
	if (take_prefix(s, "0o"))
		return 8;
	if (s->size > 1 && s->data[0] == '0' && digit_of(s->data[1]) < 10) {
		skip(s, 1);
		return 8;
	}
	return 10;
}

/* Parses @s, at least one digit, as a number in @base. */
static bool parse_digits(struct llvm_text s, unsigned base, uint64_t *ret)
{
	uint64_t value = 0;

	if (!s.size)
		return false;
	for (size_t i = 0; i < s.size; i++)
		if (digit_of(s.data[i]) >= base || __builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, digit_of(s.data[i]), &value))
			return false;
	*ret = value;
	return true;
}

bool llvm_parse_number(struct llvm_text s, uint64_t *ret)
{
	const unsigned base = take_base(&s);

	return parse_digits(s, base, ret);
}

/* Parses @s as llvm-addr2line does: hexadecimal, with or without 0x. */
static bool parse_hexadecimal(struct llvm_text s, uint64_t *ret)
{
	if (!take_prefix(&s, "0x"))
		(void)take_prefix(&s, "0X");
	return parse_digits(s, 16, ret);
}

bool llvm_is_hex(struct llvm_text s)
{
	for (size_t i = 0; i < s.size; i++)
		if (digit_of(s.data[i]) >= 16)
			return false;
	return s.size != 0;
}

/* Takes the prefix FILE: or BUILDID:; returns false if there is more than one. */
static bool take_kind(struct llvm_text *s, bool *ret_file, bool *ret_build_id)
{
	for (;;) {
		const bool file = take_prefix(s, "FILE:");

		if (!file && !take_prefix(s, "BUILDID:"))
			return true;
		if (*ret_file || *ret_build_id)
			return false;
		*ret_file = file;
		*ret_build_id = !file;
		trim_start(s);
	}
}

/* Takes the module; returns an error text, or NULL. */
static const char *take_module(struct llvm_text *s, bool has_file, struct llvm_request *ret)
{
	bool is_file = false;

	trim_start(s);
	if (!take_kind(s, &is_file, &ret->is_build_id))
		return "duplicate input file specification prefix";
	if (!is_file && !ret->is_build_id) {
		if (has_file)
			return NULL;
		ret->module = take_word(s);
		return ret->module.size ? NULL : "no input filename has been specified";
	}
	if (!s->size)
		return is_file ? "must be followed by an input file" : "must be followed by a hash";
	if (has_file)
		return "input file has already been specified";
	ret->module = take_word(s);
	if (!ret->module.size)
		return "unbalanced quotes in input file name";
	return ret->is_build_id && !llvm_is_hex(ret->module) ? "wrong format of build-id" : NULL;
}

/* Takes the address; returns an error text, or NULL. */
static const char *take_address(struct llvm_text *s, bool is_hexadecimal, struct llvm_request *ret)
{
	struct llvm_text word = { NULL, 0 };
	const char *plus;

	trim_start(s);
	if (!s->size)
		return "no module offset has been specified";
	word.data = s->data;
	while (word.size < s->size && !is_delimiter(s->data[word.size]))
		word.size++;
	if (word.size == s->size)
		while (is_space(word.data[word.size - 1]))
			word.size--;
	if (is_hexadecimal ? parse_hexadecimal(word, &ret->address)
			   : llvm_parse_number(word, &ret->address))
		return NULL;
	if (digit_of(word.data[0]) < 10)
		return "expected a number as module offset";
	ret->symbol = word;
	plus = memrchr(word.data, '+', word.size);
	if (!plus || plus == word.data)
		return NULL;
	word = (struct llvm_text){ plus + 1, word.size - (size_t)(plus - word.data) - 1 };
	if (llvm_parse_number(word, &ret->address))
		ret->symbol.size = (size_t)(plus - ret->symbol.data);
	return NULL;
}

void llvm_request_parse(const char *line, size_t size, const struct llvm_request_rules *rules,
			struct llvm_request *ret)
{
	const char *end = size ? memchr(line, '\0', size) : NULL;
	struct llvm_text s = { line, end ? (size_t)(end - line) : size };

	*ret = (struct llvm_request){ .command = LLVM_CODE };
	while (s.size && (s.data[s.size - 1] == '\r' || s.data[s.size - 1] == '\n'))
		s.size--;
	if (!s.size) {
		ret->command = LLVM_EMPTY;
		return;
	}
	if (take_prefix(&s, "DATA "))
		ret->command = LLVM_DATA;
	else if (take_prefix(&s, "FRAME "))
		ret->command = LLVM_FRAME;
	else
		(void)take_prefix(&s, "CODE ");
	ret->error = take_module(&s, rules->has_file, ret);
	ret->has_module = !ret->error;
	if (!ret->error)
		ret->error = take_address(&s, rules->is_hexadecimal, ret);
	if (ret->error)
		ret->command = LLVM_INVALID;
	else if (ret->symbol.size && ret->command == LLVM_CODE)
		ret->command = LLVM_SYMBOL;
}
