/* SPDX-License-Identifier: MIT */
#include "host/symbol/name_index.h"

#include <stdlib.h>

#include "host/base/progress.h"

/* Symbols between two questions: some milliseconds. */
#define SYMBOLS_PER_QUESTION 65536

/* Hashes a name (FNV-1a) up to its version, which follows "@". */
static uint32_t hash_name(const char *name, uint64_t left)
{
	uint32_t hash = 2166136261u;

	for (uint64_t i = 0; i < left && name[i] && (name[i] != '@' || !i); i++)
		hash = (hash ^ (uint8_t)name[i]) * 16777619u;
	return hash ^ hash >> 15;
}

struct fathom_name_index *fathom_name_index_create(struct fathom_memory *m,
						   const struct fathom_symtab *t)
{
	struct fathom_name_index *x = calloc(1, sizeof *x);
	uint64_t size = 64;

	if (!x)
		return NULL;
	while (size < t->count)
		size *= 2;
	x->mask = (uint32_t)(size - 1);
	x->bytes = sizeof *x + (size + t->count) * sizeof *x->first;
	x->memory = m;
	if (size <= UINT32_MAX && fathom_memory_fits(m, x->bytes)) {
		x->first = calloc((size_t)size, sizeof *x->first);
		x->next = malloc((t->count + 1u) * sizeof *x->next);
	}
	if (!x->first || !x->next) {
		x->bytes = 0;
		fathom_name_index_destroy(x);
		return NULL;
	}
	/* From the last to the first, so that chains are in the table's order. */
	for (uint32_t i = t->count; i-- > 1;) {
		struct fathom_symbol s;
		uint32_t *first;

		if (i % SYMBOLS_PER_QUESTION == 0 && m->session &&
		    !fathom_goes_on(m->session, FATHOM_PHASE_INDEX, t->count - i, t->count)) {
			x->bytes = 0;
			fathom_name_index_destroy(x);
			return NULL;
		}
		fathom_symtab_get(t, i, &s);
		x->next[i] = 0;
		if (!s.name || s.name >= t->strings.size || s.section == SHN_UNDEF)
			continue;
		first = &x->first[hash_name((const char *)t->strings.data + s.name,
					    t->strings.size - s.name) &
				  x->mask];
		x->next[i] = *first;
		*first = i;
	}
	fathom_memory_count(m, x->bytes);
	return x;
}

void fathom_name_index_destroy(struct fathom_name_index *x)
{
	if (!x)
		return;
	fathom_memory_uncount(x->memory, x->bytes);
	free(x->first);
	free(x->next);
	free(x);
}

uint32_t fathom_name_index_first(const struct fathom_name_index *x, struct fathom_str name)
{
	return x->first[hash_name(name.data, name.size) & x->mask];
}
