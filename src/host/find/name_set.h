/* SPDX-License-Identifier: MIT */
/*
 * The queries of one pass over names, indexed so that each name of a table costs little: exact
 * names in a hash table, demangled names in another if they are many. Patterns, expressions and a
 * few demangled names are compared one by one.
 */
#ifndef FATHOM_FIND_NAME_SET_H
#define FATHOM_FIND_NAME_SET_H

#include "host/find/query.h"
#include "host/symbol/name_keys.h"

/* The queries that a pass handles. */
enum fathom_find_pass {
	FATHOM_PASS_ASKED,     /* all, as written */
	FATHOM_PASS_DEMANGLED, /* plain names without a match, among demangled names */
};

struct fathom_name_set {
	const struct fathom_find_query *queries;
	struct fathom_name_keys exact; /* query numbers by linkage name */
	struct fathom_name_keys forms; /* query numbers by demangled name without spaces, if many */
	uint32_t *others;              /* numbers of queries compared with every name */
	size_t n_others;
	bool wants_mangled; /* forms and others apply to mangled names only */
};

/*
 * Indexes those of the @n @queries that ask for names, are not answered yet, and belong to pass
 * @which. FATHOM_PASS_DEMANGLED takes only queries without a match in @has_match; for other passes
 * it may be NULL. With FATHOM_FIND_LINKED in @flags, only linkage names are compared. Leaves room
 * for one more exact name. Returns false without memory.
 */
bool fathom_name_set_init(struct fathom_name_set *s, struct fathom_find_query *queries, size_t n,
			  enum fathom_find_pass which, uint32_t flags, const bool *has_match);
void fathom_name_set_deinit(struct fathom_name_set *s);

/* Returns whether there are queries other than exact names. */
static inline bool fathom_name_set_has_others(const struct fathom_name_set *s)
{
	return s->n_others || s->forms.n;
}

/* Returns whether a query other than an exact name may fit a name that starts like @name. */
static inline bool fathom_name_set_may_fit(const struct fathom_name_set *s, const char *name)
{
	return fathom_name_set_has_others(s) &&
	       (!s->wants_mangled || fathom_find_starts_mangled(name));
}

/* Returns whether there are no queries. */
static inline bool fathom_name_set_is_empty(const struct fathom_name_set *s)
{
	return !s->exact.n && !fathom_name_set_has_others(s);
}

/* Receives a query that fits the name; returns false to stop. */
typedef bool (*fathom_query_fn)(void *data, uint32_t query);

/*
 * Calls @fn for each query, other than exact names, that fits @name: queries with a version if
 * @versioned, else those without. Returns false if @fn did.
 */
bool fathom_name_set_compare(const struct fathom_name_set *s, struct fathom_find_name *name,
			     bool versioned, fathom_query_fn fn, void *data);

/* Calls @fn for each of the other queries. Returns whether all calls returned true. */
bool fathom_name_set_each(const struct fathom_name_set *s, fathom_query_fn fn, void *data);

#endif
