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
 * Bisection: returns for how many of @count items @before holds, an expression about item number
 * @i. It must hold for the first ones only, as in sorted items. The number of steps depends on
 * @count alone, so each becomes a conditional move: half of the branches would be mispredicted.
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

#endif
