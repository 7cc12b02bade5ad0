/* SPDX-License-Identifier: MIT */
#include "host/value/type.h"
#include "safe/base/hex.h"

#include <string.h>

/* Default maximum length of a text, in bytes. */
#define DEFAULT_TEXT 4096

struct scalar {
	const char *name;
	uint8_t kind;
	uint8_t size;
};

static const struct scalar scalars[] = {
	{ "i8", FATHOM_VALUE_SIGNED, 1 },    { "i16", FATHOM_VALUE_SIGNED, 2 },
	{ "i32", FATHOM_VALUE_SIGNED, 4 },   { "i64", FATHOM_VALUE_SIGNED, 8 },
	{ "u8", FATHOM_VALUE_UNSIGNED, 1 },  { "u16", FATHOM_VALUE_UNSIGNED, 2 },
	{ "u32", FATHOM_VALUE_UNSIGNED, 4 }, { "u64", FATHOM_VALUE_UNSIGNED, 8 },
	{ "f32", FATHOM_VALUE_FLOAT, 4 },    { "f64", FATHOM_VALUE_FLOAT, 8 },
	{ "ptr", FATHOM_VALUE_POINTER, 0 },
};

/* Takes @word if it is next. */
static bool take_word(const char **p, const char *word)
{
	const size_t n = strlen(word);

	if (strncmp(*p, word, n) != 0)
		return false;
	*p += n;
	return true;
}

/* Takes a number, decimal or 0x and hexadecimal. */
static bool take_number(const char **p, uint64_t *ret)
{
	const char *s = *p;
	const bool hex = s[0] == '0' && (s[1] == 'x' || s[1] == 'X');
	const unsigned base = hex ? 16 : 10;
	const char *first;

	s += hex ? 2 : 0;
	first = s;
	for (*ret = 0; fathom_hex_digit(*s) < base; s++)
		if (__builtin_mul_overflow(*ret, base, ret) ||
		    __builtin_add_overflow(*ret, fathom_hex_digit(*s), ret))
			return false;
	*p = s;
	return s != first;
}

/* Takes OFFSET ":"; returns false and takes nothing if that is not next. */
static bool take_offset(const char **p, uint64_t *ret)
{
	const bool negative = **p == '-';
	const char *s = *p + 1;

	if ((**p != '+' && !negative) || !take_number(&s, ret) || *s != ':')
		return false;
	*ret = negative ? 0 - *ret : *ret;
	*p = s + 1;
	return true;
}

/* Takes the next hop; returns false if there is none. */
static bool take_hop(const char **p, struct fathom_hop *ret)
{
	*ret = (struct fathom_hop){ .is_pointer = take_word(p, "*") || take_word(p, "ptr->") };
	return take_offset(p, &ret->offset) || ret->is_pointer;
}

static fathom_err bad(const char *text, const char *at, fathom_err err, const char *what,
		      struct fathom_errinfo *reterr)
{
	return fathom_fail(reterr, err, "", (uint64_t)(at - text), what);
}

static fathom_err take_value(const char *text, const char **p, struct fathom_value_type *t,
			     struct fathom_errinfo *reterr)
{
	uint64_t count = 1;
	size_t i = 0;

	if (take_word(p, "str")) {
		t->kind = FATHOM_VALUE_TEXT;
		t->size = 1;
		count = DEFAULT_TEXT;
		if (take_word(p, ":") && !take_number(p, &count))
			return bad(text, *p, FATHOM_E_ARGUMENT, "a number of bytes", reterr);
	} else if (take_word(p, "bytes:")) {
		t->kind = FATHOM_VALUE_BYTES;
		t->size = 1;
		if (!take_number(p, &count))
			return bad(text, *p, FATHOM_E_ARGUMENT, "a number of bytes", reterr);
	} else {
		while (i < sizeof scalars / sizeof *scalars && !take_word(p, scalars[i].name))
			i++;
		if (i == sizeof scalars / sizeof *scalars)
			return bad(text, *p, FATHOM_E_ARGUMENT, "no type has this name", reterr);
		t->kind = scalars[i].kind;
		t->size = scalars[i].size;
		if (take_word(p, "[") && (!take_number(p, &count) || !take_word(p, "]")))
			return bad(text, *p, FATHOM_E_ARGUMENT, "a number and ]", reterr);
	}
	/* A pointer may have 8 bytes. */
	if (!count || count > FATHOM_VALUE_MAX ||
	    count * (t->size ? t->size : 8) > FATHOM_VALUE_MAX)
		return bad(text, *p, FATHOM_E_LIMIT, "a value has 1 to 65,536 bytes", reterr);
	t->count = (uint32_t)count;
	return FATHOM_OK;
}

fathom_err fathom_value_type_parse(const char *text, struct fathom_value_type *ret,
				   struct fathom_errinfo *reterr)
{
	struct fathom_value_type t = { 0 };
	struct fathom_value_type value = { 0 };
	const char *p = text;
	struct fathom_hop hop;
	fathom_err err;

	while (take_hop(&p, &hop)) {
		if (t.n_hops == FATHOM_VALUE_HOPS)
			return bad(text, p, FATHOM_E_LIMIT, "more than 16 hops", reterr);
		t.hop[t.n_hops++] = hop;
	}
	err = take_value(text, &p, &value, reterr);
	if (err)
		return err;
	if (*p)
		return bad(text, p, FATHOM_E_ARGUMENT, "nothing may follow here", reterr);
	t.kind = value.kind;
	t.size = value.size;
	t.count = value.count;
	*ret = t;
	return FATHOM_OK;
}
