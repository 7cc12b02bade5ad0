/* SPDX-License-Identifier: MIT */
/*
 * What a query of fathom_find() asks for. The rule stands in fathom/find.h.
 *
 * Expressions are POSIX's, by the C library: what it compiles runs without backtracking but where
 * an expression refers back, takes names as they end, and needs no library that a C program does
 * not have. It repeats what is to be repeated when it compiles, so that is bounded here.
 */
#ifndef FATHOM_FIND_QUERY_H
#define FATHOM_FIND_QUERY_H

#include <regex.h>

#include "host/base/array.h"
#include "host/base/memory.h"
#include "safe/base/bytes.h"
#include "safe/base/error.h"

enum fathom_query_kind {
	FATHOM_QUERY_NAME,       /* linked as, or demangled */
	FATHOM_QUERY_GLOB,       /* text is a pattern */
	FATHOM_QUERY_EXPRESSION, /* regex */
	FATHOM_QUERY_LINE,       /* text is the end of a path */
	FATHOM_QUERY_BAD,        /* nothing can be looked for */
};

struct fathom_find_query {
	enum fathom_query_kind kind;
	struct fathom_str text;    /* NUL-terminated */
	struct fathom_str library; /* a pattern; data is NULL for none. NUL-terminated */
	struct fathom_str version; /* the same */
	struct fathom_str literal; /* a part of the text that stands in every name that is mangled
				    * from a match; empty: there is none */
	const char *bare;          /* of a name: without spaces */
	regex_t *regex;            /* of an expression; else NULL */
	uint32_t line;
	bool is_default;   /* only default versions */
	bool is_demangled; /* of a name: no symbol can be linked as this */
	bool is_answered;  /* no table need be asked any more */
	bool is_cut;       /* there were more matches than may be */
};

/*
 * A flag beside FATHOM_FIND_: queries are names as with FATHOM_FIND_LITERAL, but may have versions.
 * Their texts have to stay: they are not copied.
 */
#define FATHOM_FIND_NAMES (1u << 30)

/*
 * Reads query @text, for FATHOM_FIND_ @flags; its texts are of @arena. The literal of a name that
 * may be linked so is left to fathom_find_query_find_literal().
 */
fathom_err fathom_find_query_parse(struct fathom_find_query *q, const char *text, uint32_t flags,
				   struct fathom_arena *arena, struct fathom_errinfo *reterr);
/* Finds the literal, if it was not found yet. */
void fathom_find_query_find_literal(struct fathom_find_query *q);
void fathom_find_query_deinit(struct fathom_find_query *q);

/*
 * Whether the module at @path is one that the query asks. What has no file is called by a word in
 * brackets, [vdso], which may be left out.
 */
bool fathom_find_query_takes_module(const struct fathom_find_query *q, const char *path);

/* Whether @version, data NULL for none, is one that the query asks for. */
bool fathom_find_query_takes_version(const struct fathom_find_query *q, struct fathom_str version,
				     bool is_default);

/* Whether @path ends with what a line query calls its file. */
bool fathom_find_query_takes_file(const struct fathom_find_query *q, struct fathom_str path);

/* A name in all forms that queries are compared with. */
struct fathom_find_name {
	struct fathom_str linked;    /* NUL-terminated */
	struct fathom_str demangled; /* the same; data is NULL where it is not mangled */
	struct fathom_str plain;     /* without return type and parameters; in scratch */
	struct fathom_bytes_array scratch;
	struct fathom_bytes_array text; /* of demangled */
	bool is_known;                  /* the forms are those of linked */
};

/* Returns whether a name that starts like @linked, NUL-terminated, may be mangled. */
static inline bool fathom_find_starts_mangled(const char *linked)
{
	return linked[0] == '_' && (linked[1] == 'Z' || linked[1] == 'R' || linked[1] == 'D');
}

/* Takes @linked, NUL-terminated, as the name; it is demangled when a query wants that. */
void fathom_find_name_set(struct fathom_find_name *n, struct fathom_str linked);
void fathom_find_name_deinit(struct fathom_find_name *n);

/* Longest text of a query. */
#define FATHOM_MAX_QUERY 4096

/* Most parts of an expression, written out. */
#define FATHOM_MAX_EXPRESSION (1u << 18)

/* How many parts expression @text has when all that is repeated is written out, or more. */
uint64_t fathom_find_expression_size(const char *text);

/* The demangled forms that a name is compared with. */
#define FATHOM_NAME_FORMS 3

/*
 * Writes form @i of the demangled name to @to, without spaces and with a NUL: whole; without the
 * type it returns and its parameters; without that type only. Returns its size; 0: it has no such
 * form, or one that is too long for a query.
 */
uint32_t fathom_find_name_form(struct fathom_find_name *n, unsigned i,
			       char to[FATHOM_MAX_QUERY + 1]);

/* The demangled form, or as linked. */
struct fathom_str fathom_find_name_shown(struct fathom_find_name *n);

/* Whether a symbol with name @n is one that the query, which is no line, asks for. */
bool fathom_find_query_takes_name(const struct fathom_find_query *q, struct fathom_find_name *n);

#endif
