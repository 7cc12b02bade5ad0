/* SPDX-License-Identifier: MIT */
/*
 * Memory that counts against a session's byte budget, and growing arrays.
 *
 * The budget bounds what fathom keeps: decompressed sections, indexes, decoded blocks. It is
 * counted here and enforced where memory is kept (evict.c drops, object.c and file.c refuse). So is
 * what a search has found, until it is the caller's (budget.c refuses). What is only mapped from a
 * file is not counted; whoever reads much of it gives the pages back.
 */
#ifndef FATHOM_BASE_MEMORY_H
#define FATHOM_BASE_MEMORY_H

#include <stdatomic.h>

#include "host/base/mapping.h"
#include "safe/base/bytes.h"
#include "safe/base/error.h"

struct fathom_reach;

struct fathom_memory {
	struct fathom_mapped_table mapped; /* files; first: fathom_handle_sigbus() */
	_Atomic uint64_t used;
	uint64_t budget;
	struct fathom_reach *reach; /* of files before they are mapped; NULL: they are not tested */
};

/* Zeroed memory, or NULL; counted until fathom_memory_free() with the same size. */
void *fathom_memory_alloc(struct fathom_memory *m, size_t size);
void fathom_memory_free(struct fathom_memory *m, void *p, size_t size);

/* What several threads write is dear within a stretch of this many bytes. */
#define FATHOM_CACHE_LINE 64

/* Zeroed memory in cache lines of its own, or NULL; to be given to free(). */
void *fathom_alloc_apart(size_t size);

/* Counts bytes that were allocated elsewhere (large buffers). */
void fathom_memory_count(struct fathom_memory *m, uint64_t size);
void fathom_memory_uncount(struct fathom_memory *m, uint64_t size);

bool fathom_memory_over(const struct fathom_memory *m);

/* The bytes that may still be counted without leaving the budget. */
uint64_t fathom_memory_left(const struct fathom_memory *m);

/* Whether @size more bytes would stay inside the budget. */
bool fathom_memory_fits(const struct fathom_memory *m, uint64_t size);

/*
 * Pages of at least @size bytes, zeroed; large ones ask for huge pages, which saves most of the
 * page faults of filling them. NULL when there is no memory.
 */
void *fathom_pages_alloc(uint64_t size);
/* Makes @p, of @size bytes or NULL, larger, without a copy; NULL, and @p stays, without memory. */
void *fathom_pages_grow(void *p, uint64_t size, uint64_t larger);
void fathom_pages_free(void *p, uint64_t size);

/* An array that grows: scratch of one thread, not counted. */
struct fathom_array {
	void *data;
	size_t n;
	size_t cap; /* items */
};

bool fathom_array_grow(struct fathom_array *a, size_t item, size_t more);

/*
 * Makes room for @more items of @item bytes behind the n that are there; false without memory. Data
 * is not NULL then, even when there is nothing to hold: the C library may be given it.
 */
static inline bool fathom_array_reserve(struct fathom_array *a, size_t item, size_t more)
{
	return (a->data && more <= a->cap - a->n) || fathom_array_grow(a, item, more);
}

void fathom_array_deinit(struct fathom_array *a);

/* Items that never move, numbered from 0. Not counted. Zero but for item: empty. */
struct fathom_store {
	char **chunks;
	size_t n;
	size_t item; /* bytes of one, a multiple of 8 */
};

#define FATHOM_STORE_BITS 8 /* of a number: which item of a chunk */

/* Adds an item that is not zeroed, number n - 1; NULL without memory. */
void *fathom_store_add(struct fathom_store *s);
void fathom_store_deinit(struct fathom_store *s);

static inline void *fathom_store_at(const struct fathom_store *s, size_t i)
{
	const size_t mask = ((size_t)1 << FATHOM_STORE_BITS) - 1;

	return s->chunks[i >> FATHOM_STORE_BITS] + (i & mask) * s->item;
}

/* A bump allocator whose memory is given back as a whole. Not counted. */
struct fathom_arena {
	struct arena_chunk *chunks;
	size_t used; /* of the newest chunk */
};

/* @size bytes, 8-byte aligned and not zeroed, or NULL. */
void *fathom_arena_alloc(struct fathom_arena *a, size_t size);
/* A NUL-terminated copy of @s, or NULL. */
char *fathom_arena_strdup(struct fathom_arena *a, struct fathom_str s);
void fathom_arena_deinit(struct fathom_arena *a);

#endif
