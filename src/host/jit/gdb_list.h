/* SPDX-License-Identifier: MIT */
/*
 * Lists of GDB's JIT interface (safe/jit/gdb_layout.h), read from memory that somebody else changes
 * meanwhile: what a list says is torn then, and has to be compared with what it says a moment
 * later.
 */
#ifndef FATHOM_JIT_GDB_LIST_H
#define FATHOM_JIT_GDB_LIST_H

#include "host/base/array.h"
#include "host/base/memory.h"
#include "safe/base/reader.h"
#include "safe/jit/gdb_layout.h"

/* A list, by its descriptor. */
struct fathom_gdb_list {
	struct fathom_gdb_layout layout;
	uint64_t descriptor; /* avma */
};

struct fathom_gdb_lists {
	FATHOM_ARRAY_OF(struct fathom_gdb_list);
};

/* An entry where it stood. */
struct fathom_gdb_item {
	uint64_t avma;
	uint64_t before; /* avma of what led to it: an entry, or the descriptor */
	uint64_t list;   /* avma of the descriptor */
	struct fathom_gdb_entry entry;
};

struct fathom_gdb_items {
	FATHOM_ARRAY_OF(struct fathom_gdb_item);
};

/*
 * Adds the entries of @l, the newest first, to @items (struct fathom_gdb_item). @before, which may
 * be NULL, is what an earlier walk found: most of it is still there, and is read ahead. Those of a
 * version that is not known, and of a descriptor that cannot be read, are none. FATHOM_E_CORRUPT
 * for a list that leads astray or in a circle, which it may while it is being changed;
 * FATHOM_E_LIMIT; FATHOM_E_MEMORY.
 */
fathom_err fathom_gdb_list_walk(const struct fathom_reader *r, const struct fathom_gdb_list *l,
				const struct fathom_gdb_items *before,
				struct fathom_gdb_items *items);

/* Whether both walks found the same. */
bool fathom_gdb_items_same(const struct fathom_gdb_items *a, const struct fathom_gdb_items *b);

/*
 * Whether each of @items says itself what it comes behind, and has a symbol file. Then the walk has
 * missed nothing that was in the list all the time: it never followed an entry that had left.
 */
bool fathom_gdb_items_linked(const struct fathom_gdb_items *items);

/* What two walks found, one after the other, to be compared item by item. */
struct fathom_gdb_pair {
	const struct fathom_gdb_items *before;
	const struct fathom_gdb_items *after;
	struct fathom_keyed *sorted; /* numbers in @after by avma; NULL: both found the same */
};

/* Takes what was found, which has to stay; false without memory. */
bool fathom_gdb_pair_init(struct fathom_gdb_pair *p, const struct fathom_gdb_items *before,
			  const struct fathom_gdb_items *after);
void fathom_gdb_pair_deinit(struct fathom_gdb_pair *p);

/*
 * Whether item @i of @p->before was in its list at some moment of the walk that made @p->after,
 * with the same symbol file. One walk alone may pass through entries that have left: but either
 * both walks found the same, or what led to the entry then, and what the entry says comes before
 * it, agree.
 */
bool fathom_gdb_item_stayed(const struct fathom_gdb_pair *p, size_t i);

#endif
