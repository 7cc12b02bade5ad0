/* SPDX-License-Identifier: MIT */
/*
 * The queries of one pass over names, arranged so that each name of a table costs little: exact
 * names in a hash table; demangled names, when they are many, in another; patterns, expressions and
 * a few demangled names are compared one by one.
 */
#ifndef FATHOM_FIND_NAME_SET_H
#define FATHOM_FIND_NAME_SET_H

#include "host/find/query.h"
#include "host/symbol/name_keys.h"

/* Which queries a pass is for. */
enum fathom_find_pass {
	FATHOM_PASS_ASKED,     /* as they were asked */
	FATHOM_PASS_DEMANGLED, /* plain names that nothing is linked as, among the demangled ones */
};

struct fathom_name_set {
	const struct fathom_find_query *queries;
	struct fathom_name_keys exact; /* numbers of queries, by what a symbol may be linked as */
	struct fathom_name_keys forms; /* the same by demangled names without spaces, if many */
	uint32_t *others;              /* numbers of queries that look at every name */
	size_t n_others;
	bool wants_mangled; /* the others, and forms, are for mangled names only */
};

/*
 * Arranges those of the @n @queries that are for names, are not answered yet, and belong to pass
 * @which; of FATHOM_PASS_DEMANGLED those that @has_match does not say to have a match; else it may
 * be NULL. With FATHOM_FIND_LINKED in @flags names are compared as linked only. There is room for
 * one more exact name. Returns false without memory.
 */
bool fathom_name_set_init(struct fathom_name_set *s, struct fathom_find_query *queries, size_t n,
			  enum fathom_find_pass which, uint32_t flags, const bool *has_match);
void fathom_name_set_deinit(struct fathom_name_set *s);

/* Returns whether names have to be looked at that no exact query is for. */
static inline bool fathom_name_set_has_others(const struct fathom_name_set *s)
{
	return s->n_others || s->forms.n;
}

/* Returns whether a query but the exact ones may be for a name that starts like @name. */
static inline bool fathom_name_set_may_fit(const struct fathom_name_set *s, const char *name)
{
	return fathom_name_set_has_others(s) &&
	       (!s->wants_mangled || fathom_find_starts_mangled(name));
}

/* Returns whether there is no query at all. */
static inline bool fathom_name_set_is_empty(const struct fathom_name_set *s)
{
	return !s->exact.n && !fathom_name_set_has_others(s);
}

/* Takes query @query, which a name fits; returns false to end the comparison. */
typedef bool (*fathom_query_fn)(void *data, uint32_t query);

/*
 * Calls @fn for each query but the exact ones that @name fits: of the queries with a version, if
 * @versioned, else of those without. Returns false when @fn did.
 */
bool fathom_name_set_compare(const struct fathom_name_set *s, struct fathom_find_name *name,
			     bool versioned, fathom_query_fn fn, void *data);

/* Calls @fn for each query that asks for one of these. Returns true when all returned true. */
bool fathom_name_set_each(const struct fathom_name_set *s, fathom_query_fn fn, void *data);

#endif
