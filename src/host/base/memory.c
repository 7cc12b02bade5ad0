/* SPDX-License-Identifier: MIT */
#include "host/base/memory.h"

#include <stdlib.h>
#include <sys/mman.h>

void *fathom_memory_alloc(struct fathom_memory *m, size_t size)
{
	void *p = calloc(1, size ? size : 1);

	if (p)
		fathom_memory_count(m, size);
	return p;
}

void *fathom_alloc_apart(size_t size)
{
	const size_t whole = (size + FATHOM_CACHE_LINE - 1) & ~(size_t)(FATHOM_CACHE_LINE - 1);
	void *p = aligned_alloc(FATHOM_CACHE_LINE, whole);

	return p ? memset(p, 0, whole) : NULL;
}

void fathom_memory_free(struct fathom_memory *m, void *p, size_t size)
{
	if (!p)
		return;
	fathom_memory_uncount(m, size);
	free(p);
}

void fathom_memory_count(struct fathom_memory *m, uint64_t size)
{
	atomic_fetch_add_explicit(&m->used, size, memory_order_relaxed);
}

void fathom_memory_uncount(struct fathom_memory *m, uint64_t size)
{
	atomic_fetch_sub_explicit(&m->used, size, memory_order_relaxed);
}

bool fathom_memory_over(const struct fathom_memory *m)
{
	return atomic_load_explicit(&m->used, memory_order_relaxed) > m->budget;
}

uint64_t fathom_memory_left(const struct fathom_memory *m)
{
	const uint64_t used = atomic_load_explicit(&m->used, memory_order_relaxed);

	return used < m->budget ? m->budget - used : 0;
}

bool fathom_memory_fits(const struct fathom_memory *m, uint64_t size)
{
	return size <= fathom_memory_left(m);
}

#define HUGE_PAGE (UINT64_C(2) << 20)

void *fathom_pages_alloc(uint64_t size)
{
	void *p;

	if (!size || size > SIZE_MAX)
		return NULL;
	p = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	if (size >= 2 * HUGE_PAGE)
		(void)madvise(p, (size_t)size, MADV_HUGEPAGE);
	return p;
}

void *fathom_pages_grow(void *p, uint64_t size, uint64_t larger)
{
	void *moved;

	if (!p || larger > SIZE_MAX)
		return p ? NULL : fathom_pages_alloc(larger);
	moved = mremap(p, (size_t)size, (size_t)larger, MREMAP_MAYMOVE);
	if (moved == MAP_FAILED)
		return NULL;
	if (larger >= 2 * HUGE_PAGE)
		(void)madvise(moved, (size_t)larger, MADV_HUGEPAGE);
	return moved;
}

void fathom_pages_free(void *p, uint64_t size)
{
	if (p)
		(void)munmap(p, (size_t)size);
}

/* Adds a chunk to the @n that exist. The array of chunks doubles when it is full. */
static bool add_chunk(struct fathom_items *s, size_t n)
{
	char **chunks = s->chunks;

	if ((n & (n - 1)) == 0) {
		chunks = realloc(chunks, (n ? 2 * n : 1) * sizeof *chunks);
		if (!chunks)
			return false;
		s->chunks = chunks;
	}
	chunks[n] = malloc(s->item << FATHOM_ITEMS_BITS);
	return chunks[n] != NULL;
}

void *fathom_items_add(struct fathom_items *s)
{
	const size_t in_chunk = s->n & (((size_t)1 << FATHOM_ITEMS_BITS) - 1);

	if (!in_chunk && !add_chunk(s, s->n >> FATHOM_ITEMS_BITS))
		return NULL;
	return fathom_items_at(s, s->n++);
}

void fathom_items_deinit(struct fathom_items *s)
{
	for (size_t i = 0; i << FATHOM_ITEMS_BITS < s->n; i++)
		free(s->chunks[i]);
	free(s->chunks);
	*s = (struct fathom_items){ .item = s->item };
}

struct arena_chunk {
	struct arena_chunk *next;
	size_t size; /* capacity of bytes */
	_Alignas(8) char bytes[];
};

/* Bytes of the first chunk: thousands of small arenas may live at once. Each next one is larger. */
#define FIRST_CHUNK ((size_t)2 << 10)
#define MOST_CHUNK  ((size_t)64 << 10)

/* Returns the bytes of the chunk after @chunk, which may be NULL. */
static size_t next_chunk(const struct arena_chunk *chunk)
{
	const size_t next =
		chunk ? 4 * (chunk->size < MOST_CHUNK ? chunk->size : MOST_CHUNK) : FIRST_CHUNK;

	return next < MOST_CHUNK ? next : MOST_CHUNK;
}

void *fathom_arena_alloc(struct fathom_arena *a, size_t size)
{
	struct arena_chunk *chunk = a->chunks;
	size_t need;

	if (__builtin_add_overflow(size, 7u, &need))
		return NULL;
	need &= ~(size_t)7;
	if (!chunk || need > chunk->size - a->used) {
		const size_t next = next_chunk(chunk);
		const size_t room = need > next ? need : next;

		if (room > SIZE_MAX - sizeof *chunk)
			return NULL;
		chunk = malloc(sizeof *chunk + room);
		if (!chunk)
			return NULL;
		chunk->next = a->chunks;
		chunk->size = room;
		a->chunks = chunk;
		a->used = 0;
	}
	a->used += need;
	return chunk->bytes + a->used - need;
}

char *fathom_arena_strdup(struct fathom_arena *a, struct fathom_str s)
{
	char *copy = fathom_arena_alloc(a, (size_t)s.size + 1);

	if (copy) {
		if (s.size)
			memcpy(copy, s.data, s.size);
		copy[s.size] = '\0';
	}
	return copy;
}

void fathom_arena_deinit(struct fathom_arena *a)
{
	while (a->chunks) {
		struct arena_chunk *next = a->chunks->next;

		free(a->chunks);
		a->chunks = next;
	}
	a->used = 0;
}
