/* SPDX-License-Identifier: MIT */
#include "safe/cxx/type_name.h"

#include <string.h>

/* A name under construction. */
struct name {
	const char *p; /* what is left of the mangled one */
	const char *end;
	char *to;
	size_t n;
	bool is_wrong;
};

static bool is_at_end(const struct name *s)
{
	return s->p == s->end;
}

/* Passes @c if it comes next. */
static bool pass(struct name *s, char c)
{
	if (is_at_end(s) || *s->p != c)
		return false;
	s->p++;
	return true;
}

static void add(struct name *s, const char *text, size_t n)
{
	if (n >= FATHOM_TYPE_NAME - s->n) {
		s->is_wrong = true;
		return;
	}
	memcpy(s->to + s->n, text, n);
	s->n += n;
}

#define ADD(s, text) add((s), (text), sizeof(text) - 1)

/* Adds <source-name>: a number, and as many bytes. */
static bool add_source_name(struct name *s)
{
	static const char anonymous[] = "_GLOBAL__N_1";
	size_t n = 0;

	while (!is_at_end(s) && *s->p >= '0' && *s->p <= '9' && n < FATHOM_TYPE_NAME)
		n = n * 10 + (size_t)(*s->p++ - '0');
	if (!n || n > (size_t)(s->end - s->p))
		return false;
	if (str_is((struct fathom_str){ s->p, (uint32_t)n }, anonymous))
		ADD(s, "(anonymous namespace)");
	else
		add(s, s->p, n);
	s->p += n;
	return true;
}

/* Adds a <source-name> with its ABI tags: "B" and their names. */
static bool add_tagged_name(struct name *s)
{
	if (!add_source_name(s))
		return false;
	while (pass(s, 'B')) {
		ADD(s, "[abi:");
		if (!add_source_name(s))
			return false;
		ADD(s, "]");
	}
	return true;
}

/* Adds the parts of a <nested-name> up to its "E". */
static bool add_nested(struct name *s)
{
	bool is_first = true;

	while (!pass(s, 'E')) {
		if (!is_first)
			ADD(s, "::");
		if (is_first && s->end - s->p > 2 && s->p[0] == 'S' && s->p[1] == 't') {
			s->p += 2;
			ADD(s, "std");
		} else if (!add_tagged_name(s)) {
			return false;
		}
		is_first = false;
	}
	return !is_first;
}

/* Adds a <builtin-type> of one letter. */
static bool add_builtin(struct name *s)
{
	static const struct {
		char letter;
		const char *name;
	} types[] = {
		{ 'b', "bool" },        { 'c', "char" },
		{ 'a', "signed char" }, { 'h', "unsigned char" },
		{ 's', "short" },       { 't', "unsigned short" },
		{ 'i', "int" },         { 'j', "unsigned int" },
		{ 'l', "long" },        { 'm', "unsigned long" },
		{ 'x', "long long" },   { 'y', "unsigned long long" },
		{ 'n', "__int128" },    { 'o', "unsigned __int128" },
		{ 'f', "float" },       { 'd', "double" },
		{ 'e', "long double" }, { 'w', "wchar_t" },
	};

	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		if (!pass(s, types[i].letter))
			continue;
		for (const char *c = types[i].name; *c; c++)
			add(s, c, 1);
		return true;
	}
	return false;
}

/* Adds a type without pointers. */
static bool add_type(struct name *s)
{
	if (pass(s, 'N'))
		return add_nested(s);
	if (pass(s, 'S')) {
		if (!pass(s, 't'))
			return false;
		ADD(s, "std::");
		return add_tagged_name(s);
	}
	return add_builtin(s) || add_tagged_name(s);
}

bool fathom_type_name(struct fathom_str mangled, char to[FATHOM_TYPE_NAME])
{
	struct name s = { .p = mangled.data, .end = mangled.data + mangled.size, .to = to };
	bool is_pointer;
	bool is_const;

	/* libstdc++: names with a star are compared by their addresses. */
	(void)pass(&s, '*');
	is_pointer = pass(&s, 'P');
	is_const = is_pointer && pass(&s, 'K');
	if (!add_type(&s) || !is_at_end(&s))
		return false;
	if (is_const)
		ADD(&s, " const");
	if (is_pointer)
		ADD(&s, "*");
	to[s.n] = '\0';
	return !s.is_wrong;
}
