/* SPDX-License-Identifier: MIT */
#include "sort.h"

#include <stdbool.h>
#include <string.h>

/* One pass: distributes @from into @to by the byte of the key at @shift. */
static void radix_pass(const struct fathom_keyed *from, struct fathom_keyed *to, size_t n,
		       unsigned shift)
{
	size_t start[256] = { 0 };
	size_t sum = 0;

	for (size_t i = 0; i < n; i++)
		start[(from[i].key >> shift) & 0xff]++;
	for (unsigned b = 0; b < 256; b++) {
		const size_t count = start[b];

		start[b] = sum;
		sum += count;
	}
	for (size_t i = 0; i < n; i++)
		to[start[(from[i].key >> shift) & 0xff]++] = from[i];
}

/* Insertion sort: fewer than this many items are not worth a radix pass. */
#define SMALL 32

static void sort_small(struct fathom_keyed *items, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		const struct fathom_keyed item = items[i];
		size_t j = i;

		for (; j && items[j - 1].key > item.key; j--)
			items[j] = items[j - 1];
		items[j] = item;
	}
}

void fathom_sort_keyed(struct fathom_keyed *items, struct fathom_keyed *scratch, size_t n)
{
	struct fathom_keyed *from = items;
	struct fathom_keyed *to = scratch;
	uint64_t differ = 0;
	bool sorted = true;

	for (size_t i = 1; i < n; i++) {
		differ |= items[i].key ^ items[0].key;
		sorted &= items[i - 1].key <= items[i].key;
	}
	if (sorted)
		return;
	if (n < SMALL) {
		sort_small(items, n);
		return;
	}
	for (unsigned shift = 0; shift < 64; shift += 8) {
		struct fathom_keyed *swap = from;

		if (!((differ >> shift) & 0xff))
			continue;
		radix_pass(from, to, n, shift);
		from = to;
		to = swap;
	}
	if (from != items)
		memcpy(items, from, n * sizeof *items);
}

size_t fathom_upper_bound(const uint64_t *keys, size_t n, uint64_t key)
{
	const uint64_t *base = keys;

	while (n > 1) {
		const size_t half = n / 2;

		/* Compiles to a conditional move: the branch would be a coin toss. */
		base = base[half - 1] <= key ? base + half : base;
		n -= half;
	}
	return (size_t)(base - keys) + (n && *base <= key);
}
