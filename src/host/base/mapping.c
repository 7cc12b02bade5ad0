/* SPDX-License-Identifier: MIT */
#include "host/base/mapping.h"

#include <stdlib.h>
#include <unistd.h>

/* Returns how many entries the pieces before @piece have. */
static uint32_t first_of(uint32_t piece)
{
	return fathom_mapped_piece_size(piece) - FATHOM_MAPPED_FIRST;
}

/* Makes piece @i unless it exists; false without memory. */
static bool make_piece(struct fathom_mapped_table *t, uint32_t i)
{
	struct fathom_mapped *piece = atomic_load_explicit(&t->piece[i], memory_order_acquire);
	struct fathom_mapped *expected = NULL;

	if (piece)
		return true;
	piece = calloc(fathom_mapped_piece_size(i), sizeof *piece);
	if (piece && !atomic_compare_exchange_strong(&t->piece[i], &expected, piece))
		free(piece);
	return piece != NULL;
}

/* Makes more than twice @used entries. Returns the number of pieces; 0 without memory. */
static uint32_t make_pieces(struct fathom_mapped_table *t, uint32_t used)
{
	uint32_t n = 0;

	while (n < FATHOM_MAPPED_PIECES && first_of(n) / 2 <= used)
		if (!make_piece(t, n++))
			return 0;
	return n;
}

/* Returns entry @number of all pieces. */
static struct fathom_mapped *entry(struct fathom_mapped_table *t, uint32_t number)
{
	uint32_t piece = 0;

	while (number >= first_of(piece + 1))
		piece++;
	return atomic_load(&t->piece[piece]) + (number - first_of(piece));
}

/* Takes @m for [@start, @end); false if it is not free. */
static bool claim(struct fathom_mapped *m, uintptr_t start, uintptr_t end)
{
	uint32_t turn = atomic_load(&m->turn);

	if (turn % 2 || atomic_load(&m->start) ||
	    !atomic_compare_exchange_strong(&m->turn, &turn, turn + 1))
		return false;
	atomic_store(&m->is_cut, false);
	atomic_store(&m->end, end);
	atomic_store(&m->start, start);
	atomic_store(&m->turn, turn + 2);
	return true;
}

struct fathom_mapped *fathom_mapping_add(struct fathom_mapped_table *t, const void *start,
					 size_t size)
{
	const uint32_t used = atomic_fetch_add(&t->used, 1) + 1;
	const uint32_t pieces = make_pieces(t, used);
	struct fathom_mapped *m = NULL;

	if (!pieces) {
		atomic_fetch_sub(&t->used, 1);
		return NULL;
	}
	atomic_store(&t->page, (uintptr_t)getpagesize());
	/* At least every other entry is free: the search is short. */
	while (!m) {
		m = entry(t, atomic_fetch_add(&t->next, 1) % first_of(pieces));
		if (!claim(m, (uintptr_t)start, (uintptr_t)start + size))
			m = NULL;
	}
	return m;
}

void fathom_mapping_remove(struct fathom_mapped_table *t, struct fathom_mapped *m)
{
	if (!m)
		return;
	atomic_fetch_add(&m->turn, 1);
	atomic_store(&m->start, 0);
	atomic_store(&m->end, 0);
	atomic_fetch_add(&m->turn, 1);
	atomic_fetch_sub(&t->used, 1);
}

void fathom_mapping_deinit(struct fathom_mapped_table *t)
{
	for (uint32_t i = 0; i < FATHOM_MAPPED_PIECES; i++)
		free(atomic_load(&t->piece[i]));
}
