/* SPDX-License-Identifier: MIT */
#include "host/symbol/fdes.h"

#include <stdlib.h>

/* Reads all descriptions into @a; false without memory. */
static bool collect(const struct fathom_cfi *cfi, struct fathom_array *a)
{
	struct fathom_fde_reader r;
	struct fathom_fde fde;

	fathom_fde_reader_init(&r, cfi);
	while (fathom_fde_next(&r, &fde, NULL) == FATHOM_OK) {
		if (!fathom_array_reserve(a, sizeof(struct fathom_keyed), 1))
			return false;
		((struct fathom_keyed *)a->data)[a->n++] =
			(struct fathom_keyed){ fde.low, fde.high };
	}
	/* The second half is room for sorting. */
	return fathom_array_reserve(a, sizeof(struct fathom_keyed), a->n);
}

struct fathom_fdes *fathom_fdes_create(struct fathom_memory *m, const struct fathom_cfi *cfi)
{
	struct fathom_fdes *f = calloc(1, sizeof *f);
	struct fathom_array a = { 0 };
	void *ranges;

	if (!f || !collect(cfi, &a)) {
		fathom_array_deinit(&a);
		free(f);
		return NULL;
	}
	f->memory = m;
	f->n = a.n;
	f->ranges = a.data;
	fathom_sort_keyed(f->ranges, f->ranges + f->n, f->n);
	ranges = realloc(f->ranges, (f->n + 1) * sizeof *f->ranges);
	f->ranges = ranges ? ranges : f->ranges;
	fathom_memory_count(m, f->n * sizeof *f->ranges);
	return f;
}

void fathom_fdes_destroy(struct fathom_fdes *f)
{
	if (!f)
		return;
	fathom_memory_uncount(f->memory, f->n * sizeof *f->ranges);
	free(f->ranges);
	free(f);
}

const struct fathom_keyed *fathom_fdes_at(const struct fathom_fdes *f, uint64_t svma)
{
	size_t low = 0;
	size_t high = f->n;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (f->ranges[mid].key <= svma)
			low = mid + 1;
		else
			high = mid;
	}
	return low && f->ranges[low - 1].value > svma ? &f->ranges[low - 1] : NULL;
}
