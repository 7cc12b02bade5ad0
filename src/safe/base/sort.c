/* SPDX-License-Identifier: MIT */
#include "sort.h"

#include <stdbool.h>
#include <string.h>

/* Eleven bits a pass: six passes for any key, and counters that fit the first cache. */
#define DIGIT_BITS 11
#define DIGITS     (1u << DIGIT_BITS)

/* One pass: distributes @from into @to by the digit of the key at @shift. */
static void radix_pass(const struct fathom_keyed *from, struct fathom_keyed *to, size_t n,
		       unsigned shift, size_t start[DIGITS])
{
	size_t sum = 0;

	memset(start, 0, DIGITS * sizeof *start);
	for (size_t i = 0; i < n; i++)
		start[(from[i].key >> shift) & (DIGITS - 1)]++;
	for (unsigned b = 0; b < DIGITS; b++) {
		const size_t count = start[b];

		start[b] = sum;
		sum += count;
	}
	for (size_t i = 0; i < n; i++)
		to[start[(from[i].key >> shift) & (DIGITS - 1)]++] = from[i];
}

/* Fewer items than this are merged: a pass over the counters would cost more. */
#define SMALL 512

/* A merge sort into @scratch and back: stable, as the radix sort is. */
static void sort_small(struct fathom_keyed *items, struct fathom_keyed *scratch, size_t n)
{
	struct fathom_keyed *from = items;
	struct fathom_keyed *to = scratch;

	for (size_t width = 1; width < n; width *= 2) {
		struct fathom_keyed *swap = from;

		for (size_t low = 0; low < n; low += 2 * width) {
			const size_t mid = low + width < n ? low + width : n;
			const size_t high = mid + width < n ? mid + width : n;
			size_t a = low;
			size_t b = mid;

			for (size_t i = low; i < high; i++)
				to[i] = a < mid && (b == high || from[a].key <= from[b].key)
						? from[a++]
						: from[b++];
		}
		from = to;
		to = swap;
	}
	if (from != items)
		memcpy(items, from, n * sizeof *items);
}

void fathom_sort_keyed(struct fathom_keyed *items, struct fathom_keyed *scratch, size_t n)
{
	struct fathom_keyed *from = items;
	struct fathom_keyed *to = scratch;
	size_t start[DIGITS];
	uint64_t differ = 0;
	bool sorted = true;

	for (size_t i = 1; i < n; i++) {
		differ |= items[i].key ^ items[0].key;
		sorted &= items[i - 1].key <= items[i].key;
	}
	if (sorted)
		return;
	if (n < SMALL) {
		sort_small(items, scratch, n);
		return;
	}
	for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
		struct fathom_keyed *swap = from;

		if (!((differ >> shift) & (DIGITS - 1)))
			continue;
		radix_pass(from, to, n, shift, start);
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
