/* SPDX-License-Identifier: MIT */
/*
 * Estimates the size of a compiled expression: regcomp() expands repetitions, a group as often as
 * its count says, and once for "+". Reads POSIX's extended syntax (regex(7)) only as far as that
 * needs; regcomp() itself refuses invalid expressions.
 */
#include "host/find/query.h"

/* Maximum nesting of groups in a query. */
#define MAX_DEPTH (FATHOM_MAX_QUERY / 2)

struct sizes {
	uint64_t all[MAX_DEPTH + 1]; /* of each open group, without its last part */
	uint64_t last;               /* of the part that a repetition would repeat */
	size_t depth;
};

/* Multiplies; saturates. */
static uint64_t times(uint64_t size, uint64_t n)
{
	const uint64_t most = FATHOM_MAX_EXPRESSION + 1;

	return n && size > most / n ? most : size * n;
}

static void start_part(struct sizes *s)
{
	s->all[s->depth] += s->last;
	s->last = 1;
}

static void open_group(struct sizes *s)
{
	start_part(s);
	s->last = 0;
	if (s->depth < MAX_DEPTH)
		s->all[++s->depth] = 0;
}

static void close_group(struct sizes *s)
{
	start_part(s);
	if (!s->depth)
		return;
	s->last = s->all[s->depth] + 1;
	s->depth--;
}

/* Returns the end of the bracket expression at @p. */
static const char *skip_list(const char *p)
{
	p += p[1] == '^';
	/* A closing bracket that comes first is a character. */
	p += p[1] == ']';
	for (p++; *p && *p != ']'; p++) {
		const char kind = *p == '[' ? p[1] : '\0';

		if (kind != ':' && kind != '.' && kind != '=')
			continue;
		for (p += 2; *p && !(*p == kind && p[1] == ']'); p++)
			;
		if (!*p)
			break;
		p++;
	}
	return *p ? p : p - 1;
}

static const char *read_number(const char *p, uint64_t *ret)
{
	for (*ret = 0; *p >= '0' && *p <= '9'; p++)
		*ret = times(*ret, 10) + (uint64_t)(*p - '0');
	return p;
}

/* Repeats the last part as the braces at @p say; returns their end. */
static const char *repeat(struct sizes *s, const char *p)
{
	const char *end;
	uint64_t least;
	uint64_t most = 0;

	end = read_number(p + 1, &least);
	if (*end == ',')
		end = read_number(end + 1, &most);
	if (*end != '}') {
		start_part(s);
		return p;
	}
	s->last = times(s->last, (least > most ? least : most) + 1);
	return end;
}

uint64_t fathom_find_expression_size(const char *text)
{
	struct sizes s = { .last = 0 };
	uint64_t size;

	s.all[0] = 0;
	for (const char *p = text; *p; p++) {
		switch (*p) {
		case '(':
			open_group(&s);
			break;
		case ')':
			close_group(&s);
			break;
		case '[':
			start_part(&s);
			p = skip_list(p);
			break;
		case '{':
			p = repeat(&s, p);
			break;
		case '+':
			s.last = times(s.last, 2);
			break;
		case '*':
		case '?':
			break;
		default:
			start_part(&s);
			p += *p == '\\' && p[1];
		}
	}
	size = s.last;
	for (size_t i = 0; i <= s.depth; i++)
		size += s.all[i];
	return size;
}
