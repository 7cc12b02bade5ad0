/* SPDX-License-Identifier: MIT */
#include "cli/compat/llvm/spelled.h"

#include "cli/characters.h"

/* Most lambdas rewritten in one name, so that hostile names cost linear time. */
#define MAX_LAMBDAS 64

/* A lambda being rewritten: the position of "#N}" after its parameters. */
struct lambda {
	size_t number_at;
	size_t end;
};

struct spelling {
	struct out *o;
	const char *s;
	size_t n;
	size_t at;
	struct lambda open[MAX_LAMBDAS];
	unsigned n_open;
	unsigned n_lambdas;
};

static bool stands(const struct spelling *p, const char *text)
{
	const size_t n = strlen(text);

	return p->n - p->at >= n && memcmp(p->s + p->at, text, n) == 0;
}

/* Parses the number at *@at and moves *@at after it; saturates at 32 bits. */
static uint64_t number_at(const char *s, size_t n, size_t *at)
{
	uint64_t value = 0;

	while (*at < n && is_digit(s[*at]) && value <= UINT32_MAX)
		value = 10 * value + (uint64_t)(s[(*at)++] - '0');
	return value;
}

/* Writes "'lambda'", "'lambda0'", "'lambda1'": LLVM counts the second as 0. */
static void write_unnamed(struct out *o, const char *what, uint64_t number)
{
	out_char(o, '\'');
	out_str(o, what);
	if (number > 1)
		out_dec(o, number - 2);
	out_char(o, '\'');
}

/* Finds the end of the braces that open here, and the number before it. */
static bool find_end(const struct spelling *p, struct lambda *ret, uint64_t *ret_number)
{
	unsigned depth = 0;
	size_t at = p->at;
	size_t digits;

	for (; at < p->n; at++) {
		depth += p->s[at] == '{';
		if (p->s[at] == '}' && --depth == 0)
			break;
	}
	for (digits = at; digits > p->at && is_digit(p->s[digits - 1]);)
		digits--;
	if (at == p->n || digits == at || p->s[digits - 1] != '#')
		return false;
	*ret = (struct lambda){ digits - 1, at + 1 };
	*ret_number = number_at(p->s, p->n, &digits);
	return true;
}

/* Rewrites "{lambda(int)#2}" as "'lambda0'(int)", and "{unnamed type#1}" as "'unnamed'". */
static bool take_braces(struct spelling *p)
{
	const bool is_lambda = stands(p, "{lambda(");
	struct lambda found;
	uint64_t number;

	if (!is_lambda && !stands(p, "{unnamed type#"))
		return false;
	if (p->n_lambdas++ >= MAX_LAMBDAS || !find_end(p, &found, &number))
		return false;
	write_unnamed(p->o, is_lambda ? "lambda" : "unnamed", number);
	if (is_lambda) {
		p->open[p->n_open++] = found;
		p->at += strlen("{lambda");
	} else {
		p->at = found.end;
	}
	return true;
}

/* Rewrites a final " [clone .isra.0] [clone .cold]" as " (.isra.0.cold)". */
static bool take_clones(struct spelling *p)
{
	const char *const open = " [clone ";
	size_t at = p->at;

	while (p->n - at > strlen(open) && memcmp(p->s + at, open, strlen(open)) == 0) {
		const char *end = memchr(p->s + at, ']', p->n - at);

		if (!end)
			return false;
		at = (size_t)(end - p->s) + 1;
	}
	if (at == p->at || at != p->n)
		return false;
	out_str(p->o, " (");
	for (at = p->at; at < p->n; at++) {
		const size_t start = at + strlen(open);

		at = (size_t)((const char *)memchr(p->s + at, ']', p->n - at) - p->s);
		out_bytes(p->o, p->s + start, at - start);
	}
	out_char(p->o, ')');
	p->at = p->n;
	return true;
}

/* Replaces @from at the position by @to. */
static bool replace(struct spelling *p, const char *from, const char *to)
{
	if (!stands(p, from))
		return false;
	out_str(p->o, to);
	p->at += strlen(from);
	return true;
}

/* Drops the space of "operator< <int>". */
static bool take_operator(struct spelling *p)
{
	return replace(p, "operator<< <", "operator<<<") || replace(p, "operator< <", "operator<<");
}

/* Drops the number of "auto:1", a parameter of a generic lambda. */
static bool take_auto(struct spelling *p)
{
	if (!stands(p, "auto:") || !p->n_open)
		return false;
	out_str(p->o, "auto");
	p->at += strlen("auto:");
	(void)number_at(p->s, p->n, &p->at);
	return true;
}

/* Rewrites what LLVM spells differently at the position. */
static bool take_special(struct spelling *p)
{
	switch (p->s[p->at]) {
	case '{':
		return take_braces(p);
	case ' ':
		if (p->at && p->s[p->at - 1] == '>' && stands(p, " >")) {
			p->at++;
			return true;
		}
		return take_clones(p);
	case 'o':
		return take_operator(p);
	case 'a':
		return take_auto(p);
	case 'd':
		return replace(p, "decltype(nullptr)", "std::nullptr_t");
	default:
		return false;
	}
}

/* Writes libiberty's C++ name @s in LLVM's spelling. */
static void write_cplusplus(struct out *o, const char *s, size_t n)
{
	struct spelling p = { .o = o, .s = s, .n = n };

	if (!replace(&p, "TLS init function for ", "thread-local initialization routine for "))
		(void)replace(&p, "TLS wrapper function for ", "thread-local wrapper routine for ");
	while (p.at < p.n) {
		if (p.n_open && p.at == p.open[p.n_open - 1].number_at) {
			p.at = p.open[--p.n_open].end;
			continue;
		}
		if (!take_special(&p))
			out_char(o, s[p.at++]);
	}
}

/*
 * Writes a name of Rust's legacy scheme as LLVM does: as a C++ name with its parts unchanged, the
 * hash last. Returns false if @s is not such a name.
 */
static bool write_old_rust(struct out *o, const char *s)
{
	const size_t n = strlen(s);
	const size_t first = strlen("_ZN");
	size_t last = 0;
	size_t at = first;
	size_t size = 0;

	while (at < n && is_digit(s[at])) {
		size = number_at(s, n, &at);
		last = at;
		if (size > n - at)
			return false;
		at += size;
	}
	if (size != 17 || s[last] != 'h' || s[at] != 'E' || (s[at + 1] && s[at + 1] != '.') ||
	    strspn(s + last + 1, "0123456789abcdef") != 16)
		return false;
	for (size_t i = first; i < at;) {
		size = number_at(s, n, &i);
		out_bytes(o, s + i, size);
		i += size;
		if (i < at)
			out_str(o, "::");
	}
	if (s[at + 1]) {
		out_str(o, " (");
		out_str(o, s + at + 1);
		out_char(o, ')');
	}
	return true;
}

/* Writes a name of Rust's v0 scheme with the suffix of tools, which libiberty drops. */
static void write_new_rust(struct out *o, const struct fathom_compat_name *f)
{
	const char *added = strchr(f->linkage_name, '.');

	out_bytes(o, f->name, f->name_size);
	if (added) {
		out_str(o, " (");
		out_str(o, added);
		out_char(o, ')');
	}
}

void llvm_name(struct out *o, const struct fathom_compat_name *f)
{
	const char *linkage = f->linkage_name;
	const bool demangled = linkage && (strlen(linkage) != f->name_size ||
					   memcmp(linkage, f->name, f->name_size) != 0);

	if (!linkage && f->plain_name)
		out_str(o, f->plain_name); /* not demangled, though it may be Ada's */
	else if (!demangled)
		out_bytes(o, f->name, f->name_size);
	else if (strncmp(linkage, "_R", 2) == 0)
		write_new_rust(o, f);
	else if (strncmp(linkage, "_Z", 2) != 0 && strncmp(linkage, "_D", 2) != 0)
		out_str(o, linkage); /* Ada, which LLVM does not demangle */
	else if (strncmp(linkage, "_ZN", 3) != 0 || !write_old_rust(o, linkage))
		write_cplusplus(o, f->name, f->name_size);
}
