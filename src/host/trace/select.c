/* SPDX-License-Identifier: MIT */
#include "host/trace/select.h"

#include <stdlib.h>
#include <string.h>

#include "fathom/find.h"
#include "safe/base/error.h"

/* Returns whether @query is "FILE:". */
static bool is_file(const char *query)
{
	const size_t size = strlen(query);

	return size > 1 && query[size - 1] == ':';
}

bool fathom_selection_has_files(const struct fathom_selection *s)
{
	for (size_t i = 0; i < s->n_queries; i++)
		if (is_file(s->queries[i]))
			return true;
	return false;
}

fathom_err fathom_selection_init(struct fathom_selection *s, const char *const *queries,
				 size_t n_queries)
{
	*s = (struct fathom_selection){ .queries = queries, .n_queries = n_queries };
	s->has_found = calloc(n_queries + 1, sizeof *s->has_found);
	return s->has_found ? FATHOM_OK : FATHOM_E_MEMORY;
}

void fathom_selection_deinit(struct fathom_selection *s)
{
	free(s->has_found);
	fathom_array_free(&s->addresses);
}

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a;
	const uint64_t y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

fathom_err fathom_selection_find(struct fathom_selection *s, struct fathom_target *target,
				 struct fathom_errinfo *reterr)
{
	const struct fathom_find_options o = { .size = sizeof o };
	const char **queries;
	struct fathom_matches *matches = NULL;
	fathom_err err = FATHOM_OK;

	s->addresses.n = 0;
	if (!s->n_queries)
		return FATHOM_OK;
	queries = calloc(s->n_queries, sizeof *queries);
	if (!queries)
		return fathom_fail_memory(reterr);
	/* "FILE:" is no name: it finds nothing, and keeps the others' numbers. */
	for (size_t i = 0; i < s->n_queries; i++)
		queries[i] = is_file(s->queries[i]) ? "?" : s->queries[i];
	err = fathom_find(target, &o, queries, s->n_queries, &matches, reterr);
	free(queries);
	for (size_t i = 0; matches && i < fathom_matches_count(matches) && !err; i++) {
		const struct fathom_match *m = fathom_matches_get(matches, i);

		if (!(m->flags & FATHOM_MATCH_ADDRESS) || is_file(s->queries[m->query]))
			continue;
		s->has_found[m->query] = true;
		if (!fathom_array_push(&s->addresses, m->address))
			err = fathom_fail_memory(reterr);
	}
	fathom_matches_free(matches);
	if (s->addresses.n)
		qsort(s->addresses.items, s->addresses.n, sizeof *s->addresses.items, compare);
	return err;
}

/* Returns whether the path of @f ends with @file, @size bytes, in whole parts. */
static bool ends_with(const struct fathom_frame *f, const char *file, size_t size)
{
	return f->file && f->file_size >= size &&
	       !memcmp(f->file + f->file_size - size, file, size) &&
	       (f->file_size == size || f->file[f->file_size - size - 1] == '/');
}

static bool is_in_files(struct fathom_selection *s, const struct fathom_site *site)
{
	const struct fathom_frame *f = site->answer->frame;

	while (f && f->outer)
		f = f->outer;
	for (size_t i = 0; f && i < s->n_queries; i++) {
		if (!is_file(s->queries[i]) ||
		    !ends_with(f, s->queries[i], strlen(s->queries[i]) - 1))
			continue;
		s->has_found[i] = true;
		return true;
	}
	return false;
}

bool fathom_selection_has(struct fathom_selection *s, const struct fathom_site *site)
{
	const uint64_t low = site->function;
	const uint64_t high = low + (site->answer->size ? site->answer->size : 1);
	/* A symbol begins in the function, or a line is in it. */
	const size_t i = FATHOM_BISECT(s->addresses.n, k, s->addresses.items[k] < low);

	if (i < s->addresses.n && s->addresses.items[i] < high)
		return true;
	return is_in_files(s, site);
}
