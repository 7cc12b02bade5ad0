/* SPDX-License-Identifier: MIT */
#include "host/jit/code_table.h"

#include <stdlib.h>
#include <string.h>

#include "safe/base/sort.h"

static void drop_level(struct fathom_code_table *t, unsigned i)
{
	fathom_memory_uncount(t->memory, t->level[i].n * sizeof *t->level[i].claims);
	free(t->level[i].claims);
}

/* Merges the two newest levels. */
static fathom_err join_levels(struct fathom_code_table *t)
{
	const unsigned below = t->n_levels - 2;
	const size_t n = t->level[below].n;
	const size_t more = t->level[below + 1].n;
	struct fathom_claim *all = malloc((n + more + 1) * sizeof *all);
	struct fathom_claim *joined;
	size_t n_joined;
	fathom_err err;

	if (!all)
		return FATHOM_E_MEMORY;
	memcpy(all, t->level[below].claims, n * sizeof *all);
	memcpy(all + n, t->level[below + 1].claims, more * sizeof *all);
	err = fathom_claims_flatten(all, n + more, &joined, &n_joined);
	free(all);
	if (err)
		return err;
	drop_level(t, below);
	drop_level(t, below + 1);
	fathom_memory_count(t->memory, n_joined * sizeof *joined);
	t->level[below].claims = joined;
	t->level[below].n = n_joined;
	t->n_levels--;
	return FATHOM_OK;
}

fathom_err fathom_code_table_add(struct fathom_code_table *t, const struct fathom_claim *claims,
				 size_t n)
{
	struct fathom_claim *level;
	size_t n_level;

	/* Flattening may double them, and merging levels needs as much again. */
	if (n > SIZE_MAX / sizeof *claims / 4 ||
	    !fathom_memory_fits(t->memory, 2 * n * sizeof *claims))
		return FATHOM_E_LIMIT;
	/* Reached only if merging has failed repeatedly. */
	if (t->n_levels == FATHOM_CODE_LEVELS)
		return FATHOM_E_MEMORY;
	FATHOM_TRY(fathom_claims_flatten(claims, n, &level, &n_level));
	if (!n_level) {
		free(level);
		return FATHOM_OK;
	}
	fathom_memory_count(t->memory, n_level * sizeof *level);
	t->level[t->n_levels].claims = level;
	t->level[t->n_levels++].n = n_level;
	while (t->n_levels > 1 && t->level[t->n_levels - 1].n >= t->level[t->n_levels - 2].n / 2)
		FATHOM_TRY(join_levels(t));
	return FATHOM_OK;
}

static const struct fathom_claim *find_claim(const struct fathom_claim *claims, size_t n,
					     uint64_t avma)
{
	const size_t low = FATHOM_BISECT(n, i, claims[i].end <= avma);

	return low < n && claims[low].start <= avma ? &claims[low] : NULL;
}

const struct fathom_claim *fathom_code_table_at(const struct fathom_code_table *t, uint64_t avma)
{
	const struct fathom_claim *found = NULL;

	for (unsigned i = t->n_levels; i-- && !found;)
		found = find_claim(t->level[i].claims, t->level[i].n, avma);
	return found;
}

void fathom_code_table_clear(struct fathom_code_table *t)
{
	while (t->n_levels)
		drop_level(t, --t->n_levels);
}
