/* SPDX-License-Identifier: MIT */
/* Sorting without a heap, and bisection. */
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
 * Sorts @n items by key, stably: least-significant-digit radix sort over the digits in which the
 * keys differ. @scratch has room for another @n items. Input that is already in order costs one
 * pass.
 */
void fathom_sort_keyed(struct fathom_keyed *items, struct fathom_keyed *scratch, size_t n);

/*
 * Bisects: returns the number of items, of @count, that satisfy @before, an expression in the item
 * number @i. The items that satisfy it must come first, as in a sorted array. Both results of a
 * step are conditional moves: a branch would be mispredicted half of the time.
 */
#define FATHOM_BISECT(count, i, before)                              \
	__extension__({                                              \
		size_t first_ = 0;                                   \
		size_t left_ = (size_t)(count);                      \
                                                                     \
		while (left_) {                                      \
			const size_t half_ = left_ / 2;              \
			const size_t i = first_ + half_;             \
			const bool before_ = (before);               \
                                                                     \
			first_ = before_ ? i + 1 : first_;           \
			left_ = before_ ? left_ - half_ - 1 : half_; \
		}                                                    \
		first_;                                              \
	})

#endif
