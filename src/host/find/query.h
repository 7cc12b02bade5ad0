/* SPDX-License-Identifier: MIT */
/*
 * A query of fathom_find(), parsed. fathom/find.h defines the syntax.
 *
 * Expressions are POSIX's, by the C library: they run without backtracking unless they have
 * back-references, and need no other library. regcomp() expands repetitions, so their size is
 * bounded here.
 */
#ifndef FATHOM_FIND_QUERY_H
#define FATHOM_FIND_QUERY_H

#include <regex.h>

#include "host/base/array.h"
#include "host/base/memory.h"
#include "safe/base/bytes.h"
#include "safe/base/error.h"

enum fathom_query_kind {
	FATHOM_QUERY_NAME,       /* a linkage name or a demangled one */
	FATHOM_QUERY_GLOB,       /* text is a pattern */
	FATHOM_QUERY_EXPRESSION, /* regex */
	FATHOM_QUERY_LINE,       /* text is a path suffix */
	FATHOM_QUERY_BAD,        /* invalid */
};

struct fathom_find_query {
	enum fathom_query_kind kind;
	struct fathom_str text;    /* NUL-terminated */
	struct fathom_str library; /* pattern, NUL-terminated; data NULL: none */
	struct fathom_str version; /* pattern, NUL-terminated; data NULL: none */
	struct fathom_str literal; /* part of every mangled match; empty: none */
	const char *bare;          /* name without spaces */
	regex_t *regex;            /* compiled expression, else NULL */
	uint32_t line;
	bool is_default;   /* only default versions */
	bool is_demangled; /* name that cannot be a linkage name */
	bool is_answered;  /* needs no further tables */
	bool is_cut;       /* matches were left out (limit) */
};

/*
 * A further FATHOM_FIND_ flag: queries are names as with FATHOM_FIND_LITERAL, but may have
 * versions. Their texts are not copied and must outlive the search.
 */
#define FATHOM_FIND_NAMES (1u << 30)

/*
 * Parses query @text by FATHOM_FIND_ @flags; allocates texts in @arena. Does not find the literal
 * of a name that may be a linkage name: see fathom_find_query_find_literal().
 */
fathom_err fathom_find_query_parse(struct fathom_find_query *q, const char *text, uint32_t flags,
				   struct fathom_arena *arena, struct fathom_errinfo *reterr);
/* Finds the literal on first use. */
void fathom_find_query_find_literal(struct fathom_find_query *q);
void fathom_find_query_deinit(struct fathom_find_query *q);

/*
 * Returns whether the query's library matches the module at @path. A module without a file has a
 * name in brackets, [vdso], which queries may omit.
 */
bool fathom_find_query_takes_module(const struct fathom_find_query *q, const char *path);

/* Returns whether the query's version matches @version (data NULL: none). */
bool fathom_find_query_takes_version(const struct fathom_find_query *q, struct fathom_str version,
				     bool is_default);

/* Returns whether @path ends with the file of a line query. */
bool fathom_find_query_takes_file(const struct fathom_find_query *q, struct fathom_str path);

/* A name in all forms that queries compare. */
struct fathom_find_name {
	struct fathom_str linked;    /* NUL-terminated */
	struct fathom_str demangled; /* NUL-terminated; data NULL: not mangled */
	struct fathom_str plain;     /* without return type and parameters; in scratch */
	struct fathom_bytes_array scratch;
	struct fathom_bytes_array text; /* of demangled */
	bool is_known;                  /* the forms are up to date with linked */
};

/* Returns whether @linked, NUL-terminated, starts like a mangled name. */
static inline bool fathom_find_starts_mangled(const char *linked)
{
	return linked[0] == '_' && (linked[1] == 'Z' || linked[1] == 'R' || linked[1] == 'D');
}

/* Sets the name to @linked, NUL-terminated; it is demangled on demand. */
void fathom_find_name_set(struct fathom_find_name *n, struct fathom_str linked);
void fathom_find_name_deinit(struct fathom_find_name *n);

/* Longest text of a query. */
#define FATHOM_MAX_QUERY 4096

/* Most parts of an expanded expression. */
#define FATHOM_MAX_EXPRESSION (1u << 18)

/* Returns an upper bound of the parts of expression @text after regcomp() expands repetitions. */
uint64_t fathom_find_expression_size(const char *text);

/* Number of demangled forms of a name. */
#define FATHOM_NAME_FORMS 3

/*
 * Writes form @i of the demangled name to @to, without spaces, with a NUL: 0 whole; 1 without
 * return type and parameters; 2 without return type. Returns its size; 0 if there is no such form
 * or it is too long for a query.
 */
uint32_t fathom_find_name_form(struct fathom_find_name *n, unsigned i,
			       char to[FATHOM_MAX_QUERY + 1]);

/* Returns the demangled form, or else the linkage name. */
struct fathom_str fathom_find_name_shown(struct fathom_find_name *n);

/* Returns whether the query, which is not a line, matches name @n. */
bool fathom_find_query_takes_name(const struct fathom_find_query *q, struct fathom_find_name *n);

#endif
