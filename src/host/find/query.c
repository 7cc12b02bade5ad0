/* SPDX-License-Identifier: MIT */
#include "host/find/query.h"

#include <fnmatch.h>
#include <stdlib.h>

#include "fathom/find.h"
#include "host/base/demangle.h"
#include "safe/base/limits.h"

/* Words that demanglers add: a literal that is part of one need not occur in the mangled name. */
static const char own_words[] =
	"std string basic_string allocator char_traits istream ostream iostream basic_istream "
	"basic_ostream basic_iostream operator new delete void bool char signed unsigned short int "
	"long float double wchar_t char8_t char16_t char32_t __int128 __float128 decimal32 "
	"decimal64 decimal128 auto decltype nullptr_t nullptr const volatile restrict __restrict "
	"_Complex _Imaginary complex imaginary true false typename template sizeof alignof "
	"noexcept typeid throw requires this anonymous namespace anonymous_namespace vtable for "
	"VTT typeinfo name fn construction in virtual thunk non to covariant return guard variable "
	"reference temporary hidden alias transaction clone transactional safe init function "
	"wrapper lambda unnamed type default arg inline struct class union enum java static_cast "
	"dynamic_cast const_cast reinterpret_cast co_await closure shim impl dyn mut str as unsafe "
	"extern usize isize u8 i8 u16 i16 u32 i32 u64 i64 u128 i128 f32 f64 ref out lazy immutable "
	"shared inout pure nothrow property initializer ClassInfo Interface ModuleInfo _GLOBAL__N "
	"abi delegate byte ubyte ushort uint ulong cent ucent real creal cfloat cdouble ifloat "
	"idouble "
	"ireal wchar dchar typeof null scope";

static bool is_word_start(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_word(char c)
{
	return is_word_start(c) || (c >= '0' && c <= '9');
}

static bool starts_operator(const char *text, uint32_t left)
{
	return left >= 8 && memcmp(text, "operator", 8) == 0;
}

/*
 * Considers the word at text[i] as a literal; returns its end. Spaces do not count, so
 * "operatornew" is not a literal.
 */
static uint32_t take_word(struct fathom_find_query *q, uint32_t i)
{
	const char *start = q->text.data + i;
	uint32_t size = 0;

	while (i + size < q->text.size && is_word(start[size]))
		size++;
	if (is_word_start(*start) && size > 1 && size > q->literal.size &&
	    !starts_operator(start, size) && !memmem(own_words, sizeof own_words - 1, start, size))
		q->literal = (struct fathom_str){ start, size };
	return i + size;
}

/* Returns the end of the bracket expression at text[i], or i + 1 if it is not closed. */
static uint32_t skip_bracket(const struct fathom_find_query *q, uint32_t i)
{
	uint32_t end = i + 1;

	/* A closing bracket that comes first is literal. */
	if (end < q->text.size && (q->text.data[end] == '!' || q->text.data[end] == '^'))
		end++;
	end++;
	while (end < q->text.size && q->text.data[end] != ']')
		end++;
	return end < q->text.size ? end + 1 : i + 1;
}

void fathom_find_query_find_literal(struct fathom_find_query *q)
{
	uint32_t depth = 0;
	uint32_t i = 0;

	if (q->literal.size || q->kind == FATHOM_QUERY_EXPRESSION)
		return;

	while (i < q->text.size) {
		const char c = q->text.data[i];

		if (c == '[' && q->kind == FATHOM_QUERY_GLOB) {
			i = skip_bracket(q, i);
		} else if (!depth && is_word(c)) {
			const uint32_t start = i;

			i = take_word(q, i);
			/* The rest is the operator's name. */
			if (starts_operator(q->text.data + start, i - start))
				return;
		} else {
			depth += c == '<' || c == '(' || c == '{';
			depth -= depth && (c == '>' || c == ')' || c == '}');
			i++;
		}
	}
}

/* Returns @text without spaces: a copy if it has any; NULL without memory. */
static const char *without_spaces(const char *text, uint32_t size, struct fathom_arena *arena)
{
	char *copy;
	size_t n = 0;

	if (!memchr(text, ' ', size))
		return text;
	copy = fathom_arena_alloc(arena, (size_t)size + 1);
	for (uint32_t i = 0; copy && i < size; i++)
		if (text[i] != ' ')
			copy[n++] = text[i];
	if (copy)
		copy[n] = '\0';
	return copy;
}

/* Returns the message for regcomp()'s @error. */
static const char *name_fault(int error)
{
	switch (error) {
	case REG_EPAREN:
		return "a parenthesis in the expression has no counterpart";
	case REG_EBRACK:
		return "a [ in the expression has no ]";
	case REG_EBRACE:
		return "a { in the expression has no }";
	case REG_BADBR:
		return "what stands in braces in the expression is no number of repetitions";
	case REG_BADRPT:
		return "in the expression nothing stands before a *, + or ? that it could repeat";
	case REG_ERANGE:
		return "a range in the expression ends before it starts";
	case REG_ECTYPE:
		return "the expression names a class of characters that there is not";
	case REG_ECOLLATE:
		return "the expression names a character that there is not";
	case REG_EESCAPE:
		return "the expression ends with a backslash";
	case REG_ESUBREG:
		return "the expression refers back to a group that it does not have";
	default:
		return "not an extended regular expression";
	}
}

static fathom_err compile(struct fathom_find_query *q, struct fathom_errinfo *reterr)
{
	int error;

	q->kind = FATHOM_QUERY_EXPRESSION;
	if (fathom_find_expression_size(q->text.data) > FATHOM_MAX_EXPRESSION)
		return fathom_fail(reterr, FATHOM_E_LIMIT, "", 0,
				   "the expression has more than 262,144 parts when all that it "
				   "repeats is written out: repeat less");
	q->regex = malloc(sizeof *q->regex);
	error = q->regex ? regcomp(q->regex, q->text.data, REG_EXTENDED | REG_NOSUB) : REG_ESPACE;
	if (error) {
		free(q->regex);
		q->regex = NULL;
	}
	if (error == REG_ESPACE)
		return fathom_fail(reterr, FATHOM_E_MEMORY, "", 0, "out of memory");
	return error ? fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0, name_fault(error)) : FATHOM_OK;
}

/* Returns whether an ABI tag starts at @p, as in "f[abi:cxx11]()". */
static bool is_tag(const char *p)
{
	return strncmp(p, "[abi:", 5) == 0;
}

/*
 * Returns the first single colon of @text that precedes everything that only names contain; NULL if
 * none.
 */
static const char *find_colon(const char *text)
{
	for (const char *p = text; *p && !strchr("(<{ ", *p); p++) {
		if (is_tag(p))
			p += 4;
		else if (*p == ':' && p[1] != ':')
			return p;
		else
			p += *p == ':';
	}
	return NULL;
}

/* Returns whether @text ends with a colon and a line number. */
static bool read_line(const char *text, const char **ret_colon, uint32_t *ret_line)
{
	const char *colon = strrchr(text, ':');
	uint64_t line = 0;

	if (!colon || colon == text || colon[-1] == ':' || !colon[1] || colon[-1] == '/')
		return false;
	for (const char *p = colon + 1; *p; p++) {
		if (*p < '0' || *p > '9' || line > UINT32_MAX / 10)
			return false;
		line = line * 10 + (uint64_t)(*p - '0');
	}
	*ret_colon = colon;
	*ret_line = (uint32_t)line;
	return line && line <= UINT32_MAX;
}

static bool copy_text(struct fathom_str *to, const char *text, size_t size,
		      struct fathom_arena *arena)
{
	const struct fathom_str from = { text, (uint32_t)size };

	to->data = fathom_arena_strdup(arena, from);
	to->size = (uint32_t)size;
	return to->data != NULL;
}

/* Splits off the version at the first "@" that is not the first character. */
static bool take_version(struct fathom_find_query *q, struct fathom_arena *arena)
{
	const char *at = q->text.size ? memchr(q->text.data + 1, '@', q->text.size - 1) : NULL;
	const char *version;
	struct fathom_str name;

	if (!at)
		return true;
	q->is_default = at[1] == '@';
	version = at + 1 + q->is_default;
	if (*version && !copy_text(&q->version, version,
				   q->text.size - (size_t)(version - q->text.data), arena))
		return false;
	if (!copy_text(&name, q->text.data, (size_t)(at - q->text.data), arena))
		return false;
	q->text = name;
	return true;
}

/* Returns whether @text is an Objective-C method name. */
static bool is_method(const char *text)
{
	return (text[0] == '-' || text[0] == '+') && text[1] == '[';
}

/* Returns whether @text has wildcards; ABI tags do not count. */
static bool has_wildcard(const char *text)
{
	const char *p = strpbrk(text, "*?[");

	while (p && is_tag(p))
		p = strpbrk(p + 1, "*?[");
	return p;
}

/* Returns whether @text has characters that only demangled names have. */
static bool is_demangled(const char *text)
{
	return strstr(text, "::") || strpbrk(text, "(<~ {");
}

static bool finish_name(struct fathom_find_query *q, uint32_t flags, struct fathom_arena *arena)
{
	const bool is_name = flags & (FATHOM_FIND_LITERAL | FATHOM_FIND_NAMES);

	q->bare = q->text.data;
	/* Most names are plain words. */
	if (!strpbrk(q->text.data, "@:(<~ {*?["))
		return true;
	if (!(flags & FATHOM_FIND_LITERAL) && !take_version(q, arena))
		return false;
	if (!is_name && has_wildcard(q->text.data) && !strchr(q->text.data, '(') &&
	    !strstr(q->text.data, "operator") && !is_method(q->text.data))
		q->kind = FATHOM_QUERY_GLOB;
	q->is_demangled = q->kind == FATHOM_QUERY_NAME && is_demangled(q->text.data);
	q->bare = without_spaces(q->text.data, q->text.size, arena);
	/* Other names need it only if no linkage name matches. */
	if (q->is_demangled || q->kind == FATHOM_QUERY_GLOB)
		fathom_find_query_find_literal(q);
	return q->bare != NULL;
}

/* Returns whether @text, of @size bytes, is enclosed in slashes. */
static bool is_in_slashes(const char *text, size_t size)
{
	return size > 2 && text[0] == '/' && text[size - 1] == '/';
}

/* Parses a query without FATHOM_FIND_REGEX and FATHOM_FIND_LITERAL. */
static fathom_err parse_ruled(struct fathom_find_query *q, const char *text, uint32_t flags,
			      struct fathom_arena *arena, struct fathom_errinfo *reterr)
{
	const char *colon;
	const char *last;
	uint32_t line;
	size_t size;
	bool done = true;

	/* Expressions may contain colons; Objective-C methods do. */
	colon = is_in_slashes(text, strlen(text)) || is_method(text) ? NULL : find_colon(text);
	/* The only colon of FILE:LINE is the line's. */
	if (colon && colon != text && (!read_line(text, &last, &line) || last != colon)) {
		done = copy_text(&q->library, text, (size_t)(colon - text), arena);
		text = colon + 1;
	}
	size = strlen(text);
	if (is_in_slashes(text, size)) {
		done = done && copy_text(&q->text, text + 1, size - 2, arena);
		return done ? compile(q, reterr) : FATHOM_E_MEMORY;
	}
	if (!is_method(text) && read_line(text, &colon, &q->line)) {
		q->kind = FATHOM_QUERY_LINE;
		size = (size_t)(colon - text);
	}
	done = done && copy_text(&q->text, text, size, arena);
	if (done && q->kind != FATHOM_QUERY_LINE)
		done = finish_name(q, flags, arena);
	return done ? FATHOM_OK : FATHOM_E_MEMORY;
}

fathom_err fathom_find_query_parse(struct fathom_find_query *q, const char *text, uint32_t flags,
				   struct fathom_arena *arena, struct fathom_errinfo *reterr)
{
	const size_t size = strnlen(text, FATHOM_MAX_QUERY + 1);
	fathom_err err;

	*q = (struct fathom_find_query){ .kind = FATHOM_QUERY_NAME };
	if (size > FATHOM_MAX_QUERY)
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				   "a query of more than 4,096 bytes");
	if (flags & FATHOM_FIND_REGEX) {
		err = copy_text(&q->text, text, size, arena) ? compile(q, reterr) : FATHOM_E_MEMORY;
	} else if (flags & FATHOM_FIND_NAMES) {
		q->text = (struct fathom_str){ text, (uint32_t)size };
		err = finish_name(q, flags, arena) ? FATHOM_OK : FATHOM_E_MEMORY;
	} else if (flags & FATHOM_FIND_LITERAL) {
		err = copy_text(&q->text, text, size, arena) && finish_name(q, flags, arena)
			      ? FATHOM_OK
			      : FATHOM_E_MEMORY;
	} else {
		err = parse_ruled(q, text, flags, arena, reterr);
	}
	if (err == FATHOM_E_MEMORY)
		return fathom_fail(reterr, err, "", 0, "out of memory");
	if (!err && !q->text.size)
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0, "a query without a name");
	return err;
}

void fathom_find_query_deinit(struct fathom_find_query *q)
{
	if (q->regex)
		regfree(q->regex);
	free(q->regex);
	q->regex = NULL;
}

/* Returns whether the query's library matches the word inside the brackets of "[WORD]". */
static bool takes_bracketed(const struct fathom_find_query *q, const char *path)
{
	const size_t size = strlen(path);
	char word[256];

	if (size < 2 || size - 2 >= sizeof word)
		return false;
	memcpy(word, path + 1, size - 2);
	word[size - 2] = '\0';
	return fnmatch(q->library.data, word, 0) == 0;
}

bool fathom_find_query_takes_module(const struct fathom_find_query *q, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = path;

	if (!q->library.data)
		return true;
	if (path[0] == '[' && takes_bracketed(q, path))
		return true;
	if (slash && !strchr(q->library.data, '/'))
		name = slash + 1;
	/* "[vdso]" is a name, too. */
	return strcmp(q->library.data, name) == 0 || fnmatch(q->library.data, name, 0) == 0;
}

bool fathom_find_query_takes_version(const struct fathom_find_query *q, struct fathom_str version,
				     bool is_default)
{
	char text[256];

	if (q->is_default && (!version.data || !is_default))
		return false;
	if (!q->version.data)
		return true;
	if (!version.data || version.size >= sizeof text)
		return false;
	memcpy(text, version.data, version.size);
	text[version.size] = '\0';
	return fnmatch(q->version.data, text, 0) == 0;
}

bool fathom_find_query_takes_file(const struct fathom_find_query *q, struct fathom_str path)
{
	const struct fathom_str end = q->text;

	if (path.size < end.size ||
	    memcmp(path.data + (path.size - end.size), end.data, end.size) != 0)
		return false;
	return path.size == end.size || end.data[0] == '/' ||
	       path.data[path.size - end.size - 1] == '/';
}

void fathom_find_name_set(struct fathom_find_name *n, struct fathom_str linked)
{
	n->linked = linked;
	n->is_known = false;
}

void fathom_find_name_deinit(struct fathom_find_name *n)
{
	fathom_array_free(&n->scratch);
	fathom_array_free(&n->text);
}

/* Returns whether @rest may follow the parameters: " const", " &", " [clone .cold]". */
static bool is_qualifier(struct fathom_str rest)
{
	for (uint32_t i = 0; i < rest.size; i++)
		if (!is_word(rest.data[i]) && !strchr(" &[].$", rest.data[i]))
			return false;
	return true;
}

/* Returns the offset of the parameters of @s, or its size if it has none. */
static uint32_t parameters_start(struct fathom_str s)
{
	uint32_t end = s.size;
	uint32_t depth = 0;

	while (end && s.data[end - 1] != ')')
		end--;
	if (!end || !is_qualifier((struct fathom_str){ s.data + end, s.size - end }))
		return s.size;
	for (uint32_t i = end; i-- > 0;) {
		depth += s.data[i] == ')';
		depth -= s.data[i] == '(';
		if (depth)
			continue;
		/* "operator()" without parameters; "(anonymous namespace)::x" is not a list. */
		if (!i || (i >= 8 && memcmp(s.data + i - 8, "operator", 8) == 0))
			return s.size;
		return i;
	}
	return s.size;
}

/* Returns the offset of the name in @s, after its return type; @s has no parameters. */
static uint32_t name_start(struct fathom_str s)
{
	int depth = 0;

	for (uint32_t i = s.size; i-- > 0;) {
		const char c = s.data[i];

		depth += c == '>' || c == ')' || c == '}' || c == ']';
		depth -= c == '<' || c == '(' || c == '{' || c == '[';
		/*
		 * "operator<", "operator->" and the like upset the count: then leave nothing out.
		 */
		if (depth < 0)
			return 0;
		if (c != ' ' || depth)
			continue;
		/* "operator new", "vtable for x" and "thunk to x" are names with spaces. */
		if ((i >= 8 && memcmp(s.data + i - 8, "operator", 8) == 0) ||
		    (i >= 4 && memcmp(s.data + i - 4, " for", 4) == 0) ||
		    (i >= 3 && memcmp(s.data + i - 3, " to", 3) == 0))
			return 0;
		return i + 1;
	}
	return 0;
}

/* Demangles the name once. Without memory there is no demangled form. */
static void demangle(struct fathom_find_name *n)
{
	uint32_t start;
	uint32_t end;

	if (n->is_known)
		return;
	n->is_known = true;
	n->demangled = (struct fathom_str){ NULL, 0 };
	n->plain = (struct fathom_str){ NULL, 0 };
	n->text.n = 0;
	n->scratch.n = 0;
	if (fathom_demangle(n->linked, false, &n->text) || !fathom_array_room(&n->text, 1))
		return;
	n->text.items[n->text.n] = '\0';
	n->demangled = (struct fathom_str){ n->text.items, (uint32_t)n->text.n };
	end = parameters_start(n->demangled);
	start = end < n->demangled.size ? name_start((struct fathom_str){ n->demangled.data, end })
					: 0;
	if (!fathom_array_room(&n->scratch, (size_t)(end - start) + 1))
		return;
	memcpy(n->scratch.items, n->demangled.data + start, end - start);
	n->scratch.items[end - start] = '\0';
	n->plain = (struct fathom_str){ n->scratch.items, end - start };
}

struct fathom_str fathom_find_name_shown(struct fathom_find_name *n)
{
	demangle(n);
	return n->demangled.data ? n->demangled : n->linked;
}

/* Returns whether @linked may have a demangled form. */
static bool is_mangled(struct fathom_str linked)
{
	return linked.size >= 3 && fathom_find_starts_mangled(linked.data);
}

/* Returns form @i as a part of the demangled name; size 0: none. */
static struct fathom_str form_of(const struct fathom_find_name *n, unsigned i)
{
	const struct fathom_str whole = n->demangled;
	uint32_t start;
	uint32_t end;

	if (i == 0)
		return whole;
	end = parameters_start(whole);
	/* A name without parameters is form 0 already. */
	if (end == whole.size)
		return (struct fathom_str){ NULL, 0 };
	if (i == 1)
		return n->plain;
	start = name_start((struct fathom_str){ whole.data, end });
	return (struct fathom_str){ whole.data + start, start ? whole.size - start : 0 };
}

uint32_t fathom_find_name_form(struct fathom_find_name *n, unsigned i,
			       char to[FATHOM_MAX_QUERY + 1])
{
	struct fathom_str form;
	uint32_t size = 0;

	if (!is_mangled(n->linked))
		return 0;
	demangle(n);
	if (!n->demangled.data)
		return 0;
	form = form_of(n, i);
	for (uint32_t k = 0; k < form.size; k++) {
		if (form.data[k] == ' ')
			continue;
		if (size == FATHOM_MAX_QUERY)
			return 0;
		to[size++] = form.data[k];
	}
	to[size] = '\0';
	return size;
}

/* Returns whether @s without its spaces equals @bare. */
static bool equal_bare(const char *bare, struct fathom_str s)
{
	for (uint32_t i = 0; i < s.size; i++) {
		if (s.data[i] == ' ')
			continue;
		if (s.data[i] != *bare++)
			return false;
	}
	return !*bare;
}

/* Returns whether the query, a name, is a demangled form of @n. */
static bool takes_demangled(const struct fathom_find_query *q, struct fathom_find_name *n)
{
	demangle(n);
	for (unsigned i = 0; n->demangled.data && i < FATHOM_NAME_FORMS; i++) {
		const struct fathom_str form = form_of(n, i);

		if (form.size && equal_bare(q->bare, form))
			return true;
	}
	return false;
}

static bool takes_form(const struct fathom_find_query *q, struct fathom_str s)
{
	if (!s.data)
		return false;
	return q->kind == FATHOM_QUERY_GLOB ? fnmatch(q->text.data, s.data, 0) == 0
					    : regexec(q->regex, s.data, 0, NULL, 0) == 0;
}

bool fathom_find_query_takes_name(const struct fathom_find_query *q, struct fathom_find_name *n)
{
	if (q->kind == FATHOM_QUERY_NAME ? str_equal(q->text, n->linked) : takes_form(q, n->linked))
		return true;
	if (!is_mangled(n->linked))
		return false;
	if (q->literal.size &&
	    !memmem(n->linked.data, n->linked.size, q->literal.data, q->literal.size))
		return false;
	if (q->kind == FATHOM_QUERY_NAME)
		return takes_demangled(q, n);
	demangle(n);
	return takes_form(q, n->demangled) || takes_form(q, n->plain);
}
