/* SPDX-License-Identifier: MIT */
/* Optimal string alignment: edit distance with transpositions (Damerau 1964). */
#include "host/base/near.h"

#include <limits.h>

unsigned fathom_near_slips(uint32_t size)
{
	return size < 3 || size > FATHOM_NEAR_LONGEST ? 0 : size < 6 ? 1 : 2;
}

/* Drops the common prefix and suffix. */
static void drop_common(struct fathom_str *a, struct fathom_str *b)
{
	while (a->size && b->size && a->data[0] == b->data[0]) {
		a->data++;
		a->size--;
		b->data++;
		b->size--;
	}
	while (a->size && b->size && a->data[a->size - 1] == b->data[b->size - 1]) {
		a->size--;
		b->size--;
	}
}

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Three rows of the distance matrix: row[i % 3][k] is the distance from a[..i] to b[..k]. */
struct rows {
	unsigned row[3][FATHOM_NEAR_LONGEST + 1];
};

/* Fills row @i, i > 0. Returns its smallest distance. */
static unsigned fill_row(struct rows *r, struct fathom_str a, struct fathom_str b, uint32_t i)
{
	const unsigned *before = r->row[(i - 1) % 3];
	const unsigned *swapped = r->row[(i + 1) % 3]; /* row i - 2 */
	unsigned *row = r->row[i % 3];
	unsigned smallest = i;

	row[0] = i;
	for (uint32_t k = 1; k <= b.size; k++) {
		row[k] = before[k - 1] + (a.data[i - 1] != b.data[k - 1]);
		row[k] = least(row[k], least(before[k], row[k - 1]) + 1);
		if (i > 1 && k > 1 && a.data[i - 1] == b.data[k - 2] &&
		    a.data[i - 2] == b.data[k - 1])
			row[k] = least(row[k], swapped[k - 2] + 1);
		smallest = least(smallest, row[k]);
	}
	return smallest;
}

unsigned fathom_near_distance(struct fathom_str a, struct fathom_str b, unsigned most)
{
	struct rows r;

	if (a.size > FATHOM_NEAR_LONGEST || b.size > FATHOM_NEAR_LONGEST ||
	    (a.size > b.size ? a.size - b.size : b.size - a.size) > most)
		return most + 1;
	drop_common(&a, &b);
	for (uint32_t k = 0; k <= b.size; k++)
		r.row[0][k] = k;
	/* The smallest distance only grows, but a transposition can reach back two rows. */
	for (uint32_t i = 1; i <= a.size; i++)
		if (fill_row(&r, a, b, i) > most + 1)
			return most + 1;
	return least(r.row[a.size % 3][b.size], most + 1);
}

/* Returns the slips from @wanted to @name, as fathom_near_text() counts; UINT_MAX if not near. */
static unsigned slips_to(struct fathom_str wanted, const char *name)
{
	const struct fathom_str other = { name, (uint32_t)strnlen(name, FATHOM_NEAR_LONGEST + 1) };
	const unsigned most = fathom_near_slips(wanted.size);
	unsigned slips;

	if (wanted.size >= 2 && other.size > wanted.size &&
	    memcmp(name, wanted.data, wanted.size) == 0)
		return 1;
	slips = fathom_near_distance(wanted, other, most);
	return slips <= most ? slips : UINT_MAX;
}

const char *fathom_near_text(const char *wanted, const char *const *names, size_t n)
{
	const struct fathom_str w = { wanted, (uint32_t)strnlen(wanted, FATHOM_NEAR_LONGEST + 1) };
	const char *nearest = NULL;
	unsigned best = UINT_MAX;

	for (size_t i = 0; i < n; i++) {
		const unsigned slips = slips_to(w, names[i]);

		if (slips < best) {
			best = slips;
			nearest = names[i];
		}
	}
	return nearest;
}
