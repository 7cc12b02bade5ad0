/* SPDX-License-Identifier: MIT */
#include "safe/base/sort.h"

#include <stdbool.h>
#include <string.h>

/* Eleven bits a pass: six passes for any key, and counters that fit the L1 cache. */
#define DIGIT_BITS 11
#define DIGITS     (1u << DIGIT_BITS)

/* Distributes @from into @to by the digit of the key at @shift. */
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

/* Fewer items than this are merge-sorted: a radix pass over the counters would cost more. */
#define SMALL 512

/* Merge-sorts @items, with @scratch as the second buffer. Stable, as the radix sort is. */
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

/* Returns the bits in which the keys differ; 0 if they are in order already. */
static uint64_t differing_bits(const struct fathom_keyed *items, size_t n)
{
	uint64_t differ = 0;
	bool sorted = true;

	for (size_t i = 1; i < n; i++) {
		differ |= items[i].key ^ items[0].key;
		sorted &= items[i - 1].key <= items[i].key;
	}
	return sorted ? 0 : differ;
}

/* Sorts by the digits that have bits of @differ, the lowest first. */
static void sort_digits(struct fathom_keyed *items, struct fathom_keyed *scratch, size_t n,
			uint64_t differ, size_t start[DIGITS])
{
	struct fathom_keyed *from = items;
	struct fathom_keyed *to = scratch;

	if (!differ)
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

/* Three digits have this many bits. Keys that differ above them differ widely. */
#define WIDE_BITS 33

/*
 * Keys are often addresses of a few regions that are far apart: they differ in few digits within a
 * region, but in many over all. So keys that differ widely are first divided by their upper bits,
 * unless these have more values than this.
 */
#define MAX_REGIONS 8

/*
 * Fills in the distinct values of the keys' bits from @shift on, sorted. Returns their number; 0 if
 * there are too many.
 */
static size_t find_regions(const struct fathom_keyed *items, size_t n, unsigned shift,
			   uint64_t regions[MAX_REGIONS])
{
	size_t n_regions = 0;

	for (size_t i = 0; i < n; i++) {
		const uint64_t top = items[i].key >> shift;
		size_t at = n_regions;

		if (i && top == items[i - 1].key >> shift)
			continue;
		while (at && regions[at - 1] > top)
			at--;
		if (at && regions[at - 1] == top)
			continue;
		if (n_regions == MAX_REGIONS)
			return 0;
		memmove(&regions[at + 1], &regions[at], (n_regions - at) * sizeof *regions);
		regions[at] = top;
		n_regions++;
	}
	return n_regions;
}

void fathom_sort_keyed(struct fathom_keyed *items, struct fathom_keyed *scratch, size_t n)
{
	const uint64_t differ = differing_bits(items, n);
	uint64_t regions[MAX_REGIONS];
	size_t start[DIGITS];
	size_t n_regions = 0;
	size_t done = 0;

	if (differ >> WIDE_BITS && n >= SMALL)
		n_regions = find_regions(items, n, WIDE_BITS, regions);
	if (!n_regions) {
		sort_digits(items, scratch, n, differ, start);
		return;
	}
	for (size_t r = 0; r < n_regions; r++) {
		size_t end = done;
		size_t others = 0;

		/* Moves the keys of this region to the front. Both groups keep their order. */
		for (size_t i = done; i < n; i++)
			if (items[i].key >> WIDE_BITS == regions[r])
				items[end++] = items[i];
			else
				scratch[others++] = items[i];
		memcpy(items + end, scratch, others * sizeof *items);
		sort_digits(items + done, scratch, end - done,
			    differing_bits(items + done, end - done), start);
		done = end;
	}
}
