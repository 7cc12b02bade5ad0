/* SPDX-License-Identifier: MIT */
/* Sorting without a heap, and searching what is sorted. */
#ifndef FATHOM_BASE_SORT_H
#define FATHOM_BASE_SORT_H

#include <stdbool.h>
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

/*
 * The one bisection: how many of @count items @before holds for, an expression about item number
 * @i. It holds for the first ones only, as it does of sorted items. Takes as many steps whatever
 * they say, so that each becomes a conditional move: the branch would be a coin toss.
 */
#define FATHOM_BISECT(count, i, before)                              \
	__extension__({                                              \
		size_t first_ = 0;                                   \
		size_t left_ = (size_t)(count);                      \
                                                                     \
		while (left_ > 1) {                                  \
			const size_t half_ = left_ / 2;              \
			const size_t i = first_ + half_ - 1;         \
                                                                     \
			first_ = (before) ? first_ + half_ : first_; \
			left_ -= half_;                              \
		}                                                    \
		if (left_) {                                         \
			const size_t i = first_;                     \
                                                                     \
			first_ += (before) ? 1 : 0;                  \
		}                                                    \
		first_;                                              \
	})

/* The number of the first @n sorted @keys that are <= @key. */
size_t fathom_upper_bound(const uint64_t *keys, size_t n, uint64_t key);

/* How many of @items, @n and sorted by key, have a key below @key. */
size_t fathom_lower_bound(const struct fathom_keyed *items, size_t n, uint64_t key);

#endif
