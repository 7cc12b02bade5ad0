/* SPDX-License-Identifier: MIT */
/* Sorting without a heap, and searching what is sorted. */
#ifndef FATHOM_BASE_SORT_H
#define FATHOM_BASE_SORT_H

#include <stddef.h>
#include <stdint.h>

struct fathom_keyed {
	uint64_t key;
	uint64_t value;
};

/*
 * Stable sort of @n items by key: least-significant-digit radix sort over the bytes in which the
 * keys differ. @scratch holds another @n items. Input that is already in order costs one pass.
 */
void fathom_sort_keyed(struct fathom_keyed *items, struct fathom_keyed *scratch, size_t n);

/* The number of the first @n sorted @keys that are <= @key. */
size_t fathom_upper_bound(const uint64_t *keys, size_t n, uint64_t key);

/* How many of @items, @n and sorted by key, have a key below @key. */
size_t fathom_lower_bound(const struct fathom_keyed *items, size_t n, uint64_t key);

#endif
