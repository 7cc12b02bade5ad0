/* SPDX-License-Identifier: MIT */
/*
 * Memory that counts against a session's byte budget, and growing arrays.
 *
 * The budget bounds what fathom keeps: decompressed sections, indexes, decoded blocks. Bytes are
 * counted here; the limit is enforced where memory is kept (evict.c drops, object.c and file.c
 * refuse). The results of a search count, too, until the caller owns them (budget.c refuses).
 * Mapped files do not count; code that reads much of one gives the pages back.
 */
#ifndef FATHOM_BASE_MEMORY_H
#define FATHOM_BASE_MEMORY_H

#include <stdatomic.h>

#include "host/base/library.h"
#include "host/base/mapping.h"
#include "safe/base/bytes.h"
#include "safe/base/error.h"

struct fathom;
struct fathom_fs_probe;

struct fathom_memory {
	struct fathom_mapped_table mapped; /* mapped files; first: fathom_handle_sigbus() */
	_Atomic uint64_t used;
	uint64_t budget;
	struct fathom *session;        /* whose it is; NULL: of none, as in tests */
	struct fathom_fs_probe *reach; /* tests files before they are mapped; NULL: no tests */
	struct fathom_library_kept libraries[FATHOM_LIBRARIES];
};

/* Returns zeroed memory, or NULL. Counts it until fathom_memory_free() with the same size. */
void *fathom_memory_alloc(struct fathom_memory *m, size_t size);
void fathom_memory_free(struct fathom_memory *m, void *p, size_t size);

/* Bytes per cache line. Data of different threads stands in different lines (false sharing). */
#define FATHOM_CACHE_LINE 64

/* Returns zeroed memory in cache lines of its own, or NULL. free() frees it. */
void *fathom_alloc_apart(size_t size);

/* Counts bytes that were allocated elsewhere (large buffers). */
void fathom_memory_count(struct fathom_memory *m, uint64_t size);
void fathom_memory_uncount(struct fathom_memory *m, uint64_t size);

bool fathom_memory_over(const struct fathom_memory *m);

/* Returns how many more bytes fit into the budget. */
uint64_t fathom_memory_left(const struct fathom_memory *m);

/* Returns whether @size more bytes fit into the budget. */
bool fathom_memory_fits(const struct fathom_memory *m, uint64_t size);

/*
 * Returns zeroed pages of at least @size bytes, or NULL. Large ones ask for huge pages, which saves
 * most of the page faults.
 */
void *fathom_pages_alloc(uint64_t size);
/* Enlarges @p, of @size bytes or NULL, without a copy. Without memory returns NULL and keeps @p. */
void *fathom_pages_grow(void *p, uint64_t size, uint64_t larger);
void fathom_pages_free(void *p, uint64_t size);

/* Items with stable addresses, numbered from 0. Not counted. Empty if all but item is zero. */
struct fathom_items {
	char **chunks;
	size_t n;
	size_t item; /* bytes per item, a multiple of 8 */
};

#define FATHOM_ITEMS_BITS 8 /* low bits of an item's number: its place in the chunk */

/* Appends an item, not zeroed, as number n - 1; NULL without memory. */
void *fathom_items_add(struct fathom_items *s);
void fathom_items_deinit(struct fathom_items *s);

static inline void *fathom_items_at(const struct fathom_items *s, size_t i)
{
	const size_t mask = ((size_t)1 << FATHOM_ITEMS_BITS) - 1;

	return s->chunks[i >> FATHOM_ITEMS_BITS] + (i & mask) * s->item;
}

/* A bump allocator, freed as a whole. Not counted. */
struct fathom_arena {
	struct arena_chunk *chunks;
	size_t used; /* bytes of the newest chunk */
};

/* Returns @size bytes, 8-byte aligned and not zeroed, or NULL. */
void *fathom_arena_alloc(struct fathom_arena *a, size_t size);
/* Returns a NUL-terminated copy of @s, or NULL. */
char *fathom_arena_strdup(struct fathom_arena *a, struct fathom_str s);
void fathom_arena_deinit(struct fathom_arena *a);

#endif
