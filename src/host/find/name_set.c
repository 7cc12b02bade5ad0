/* SPDX-License-Identifier: MIT */
#include "host/find/name_set.h"

#include <stdlib.h>

#include "fathom/find.h"

/* Number of names from which demangling every symbol is faster than comparing it with each name. */
#define MANY_NAMES 16

/* Returns whether pass @which compares the query with demangled names only. */
static bool is_for_demangled(const struct fathom_find_query *q, enum fathom_find_pass which)
{
	return q->kind == FATHOM_QUERY_NAME && (q->is_demangled || which == FATHOM_PASS_DEMANGLED);
}

static bool is_of_pass(const struct fathom_find_query *q, enum fathom_find_pass which, bool matched)
{
	if (q->kind == FATHOM_QUERY_LINE || q->kind == FATHOM_QUERY_BAD || q->is_answered)
		return false;
	return which == FATHOM_PASS_ASKED ||
	       (q->kind == FATHOM_QUERY_NAME && !q->is_demangled && !matched);
}

/* Moves the demangled names from others to their own hash table, if they are many. */
static bool arrange_forms(struct fathom_name_set *s, enum fathom_find_pass which)
{
	size_t names = 0;
	size_t n = 0;

	for (size_t i = 0; i < s->n_others; i++)
		names += is_for_demangled(&s->queries[s->others[i]], which);
	if (names <= MANY_NAMES)
		return true;
	if (!fathom_name_keys_init(&s->forms, names))
		return false;
	for (size_t i = 0; i < s->n_others; i++) {
		const struct fathom_find_query *q = &s->queries[s->others[i]];

		if (is_for_demangled(q, which))
			fathom_name_keys_add(
				&s->forms,
				(struct fathom_str){ q->bare, (uint32_t)strlen(q->bare) },
				s->others[i]);
		else
			s->others[n++] = s->others[i];
	}
	s->n_others = n;
	return true;
}

bool fathom_name_set_init(struct fathom_name_set *s, struct fathom_find_query *queries, size_t n,
			  enum fathom_find_pass which, uint32_t flags, const bool *has_match)
{
	const bool linked = flags & FATHOM_FIND_LINKED;

	*s = (struct fathom_name_set){ .queries = queries,
				       .others = malloc((n + 1) * sizeof *s->others),
				       .wants_mangled = true };
	if (!s->others || !fathom_name_keys_init(&s->exact, n + 1))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		struct fathom_find_query *q = &queries[i];

		if (!is_of_pass(q, which, has_match && has_match[i]))
			continue;
		if (q->kind == FATHOM_QUERY_NAME && which == FATHOM_PASS_ASKED)
			fathom_name_keys_add(&s->exact, q->text, i);
		if (q->kind == FATHOM_QUERY_NAME && (linked || !is_for_demangled(q, which)))
			continue;
		s->wants_mangled &= q->kind == FATHOM_QUERY_NAME;
		fathom_find_query_find_literal(q);
		s->others[s->n_others++] = i;
	}
	return arrange_forms(s, which);
}

void fathom_name_set_deinit(struct fathom_name_set *s)
{
	free(s->others);
	fathom_name_keys_deinit(&s->exact);
	fathom_name_keys_deinit(&s->forms);
}

static bool has_version(const struct fathom_find_query *q)
{
	return q->version.data || q->is_default;
}

/* Looks up the demangled forms of @name in the hash table. */
static bool compare_forms(const struct fathom_name_set *s, struct fathom_find_name *name,
			  bool versioned, fathom_query_fn fn, void *data)
{
	char form[FATHOM_MAX_QUERY + 1];

	for (unsigned i = 0; i < FATHOM_NAME_FORMS; i++) {
		const uint32_t size = fathom_find_name_form(name, i, form);

		for (uint32_t k = size ? fathom_name_keys_first(&s->forms, form, size) : 0; k;
		     k = fathom_name_keys_next(&s->forms, k)) {
			const uint32_t query = s->forms.item[k - 1].value;

			if (strcmp(s->queries[query].bare, form) == 0 &&
			    has_version(&s->queries[query]) == versioned && !fn(data, query))
				return false;
		}
	}
	return true;
}

bool fathom_name_set_compare(const struct fathom_name_set *s, struct fathom_find_name *name,
			     bool versioned, fathom_query_fn fn, void *data)
{
	if (s->forms.n && !compare_forms(s, name, versioned, fn, data))
		return false;
	for (size_t i = 0; i < s->n_others; i++) {
		const struct fathom_find_query *q = &s->queries[s->others[i]];

		if (has_version(q) == versioned && fathom_find_query_takes_name(q, name) &&
		    !fn(data, s->others[i]))
			return false;
	}
	return true;
}

bool fathom_name_set_each(const struct fathom_name_set *s, fathom_query_fn fn, void *data)
{
	for (uint32_t i = 0; i < s->exact.n; i++)
		if (!fn(data, s->exact.item[i].value))
			return false;
	for (uint32_t i = 0; i < s->forms.n; i++)
		if (!fn(data, s->forms.item[i].value))
			return false;
	for (size_t i = 0; i < s->n_others; i++)
		if (!fn(data, s->others[i]))
			return false;
	return true;
}
