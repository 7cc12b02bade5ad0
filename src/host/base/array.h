/* SPDX-License-Identifier: MIT */
/*
 * Arrays that grow. A struct that is one is declared as
 *
 *	struct fathom_claims {
 *		FATHOM_ARRAY_OF(struct fathom_claim);
 *	};
 *
 * All zero, it is empty. The macros evaluate the array's expression more than once.
 */
#ifndef FATHOM_BASE_ARRAY_H
#define FATHOM_BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "safe/base/sort.h"

/* The members of an array of @type: the items, their number, and how many there is room for. */
#define FATHOM_ARRAY_OF(type) \
	type *items;          \
	size_t n;             \
	size_t cap

/*
 * Makes room for @more items at the end; false without memory. If true, items is not NULL, even if
 * there are none: it can be passed to the C library.
 */
#define fathom_array_room(a, more)                              \
	(((a)->items && (size_t)(more) <= (a)->cap - (a)->n) || \
	 fathom_array_enlarge(&(a)->items, &(a)->cap, (a)->n, (more), sizeof *(a)->items))

/* Appends an item; false without memory. */
#define fathom_array_push(a, ...) \
	(fathom_array_room((a), 1) && ((a)->items[(a)->n++] = (__VA_ARGS__), true))

/* Frees the items and empties the array. */
#define fathom_array_free(a) fathom_array_clear(&(a)->items, &(a)->n, &(a)->cap)

/*
 * The functions after the macros. @items is the address of a pointer to items of any type; @size
 * is the bytes of one item.
 */
bool fathom_array_enlarge(void *items, size_t *cap, size_t n, size_t more, size_t size);
void fathom_array_clear(void *items, size_t *n, size_t *cap);

/* Arrays of common types. */
struct fathom_bytes_array {
	FATHOM_ARRAY_OF(char);
};

struct fathom_keyed_array {
	FATHOM_ARRAY_OF(struct fathom_keyed);
};

struct fathom_u32_array {
	FATHOM_ARRAY_OF(uint32_t);
};

struct fathom_size_array {
	FATHOM_ARRAY_OF(size_t);
};

struct fathom_u64_array {
	FATHOM_ARRAY_OF(uint64_t);
};

#endif
