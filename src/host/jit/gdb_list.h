/* SPDX-License-Identifier: MIT */
/*
 * Lists of GDB's JIT interface (safe/jit/gdb_layout.h), read from memory that a running program
 * changes: a reading may be torn and must be compared with another a moment later.
 */
#ifndef FATHOM_JIT_GDB_LIST_H
#define FATHOM_JIT_GDB_LIST_H

#include "host/base/array.h"
#include "host/base/memory.h"
#include "safe/base/reader.h"
#include "safe/jit/gdb_layout.h"

/* Sources of code in an object: its list, and our registry (registry_list.h), which comes first. */
struct fathom_gdb_list {
	struct fathom_gdb_layout layout;
	uint64_t descriptor; /* avma; 0: it has none */
	uint64_t registry;   /* avma of its head; 0: it has none */
};

struct fathom_gdb_lists {
	FATHOM_ARRAY_OF(struct fathom_gdb_list);
};

/* An entry and its position in a list, or a row of a registry. */
struct fathom_gdb_item {
	uint64_t avma;   /* of a row: where its code begins */
	uint64_t before; /* avma of the entry, descriptor or table that led to it */
	uint64_t list;   /* avma of the descriptor or head */
	struct fathom_gdb_entry entry;
	uint64_t low; /* of a row: where it has code */
	uint64_t high;
	uint64_t serial; /* of a row: that of its symbol file; 0: an entry of a list */
};

struct fathom_gdb_items {
	FATHOM_ARRAY_OF(struct fathom_gdb_item);
};

/*
 * Appends the entries of @l, the newest first, or the rows of its registry, to @items. @before, the
 * items of an earlier walk or NULL, is used to read ahead. A list with an unknown version or an
 * unreadable descriptor is empty. FATHOM_E_CORRUPT if the list has a bad pointer or a cycle, as it
 * may while it changes; errors of fathom_registry_walk(); FATHOM_E_LIMIT; FATHOM_E_MEMORY.
 */
fathom_err fathom_gdb_list_walk(const struct fathom_reader *r, const struct fathom_gdb_list *l,
				const struct fathom_gdb_items *before,
				struct fathom_gdb_items *items);

/* Returns whether both walks found the same. */
bool fathom_gdb_items_same(const struct fathom_gdb_items *a, const struct fathom_gdb_items *b);

/*
 * Returns whether each of @items has a back link to its predecessor, and a symbol file. Then the
 * walk never followed an entry that had left, so it missed nothing that was in the list all the
 * time.
 */
bool fathom_gdb_items_linked(const struct fathom_gdb_items *items);

/* The items of two successive walks, to compare one by one. */
struct fathom_gdb_pair {
	const struct fathom_gdb_items *before;
	const struct fathom_gdb_items *after;
	struct fathom_keyed *sorted; /* indices in after by avma; NULL: both found the same */
};

/* Prepares @p for two walks, which must outlive it; returns false if out of memory. */
bool fathom_gdb_pair_init(struct fathom_gdb_pair *p, const struct fathom_gdb_items *before,
			  const struct fathom_gdb_items *after);
void fathom_gdb_pair_deinit(struct fathom_gdb_pair *p);

/*
 * Returns whether item @i of @p->before was in its list, with the same symbol file, at some moment
 * of the walk that made @p->after. One walk alone may pass through entries that have left; so
 * either both walks must be equal, or the entry's predecessor in the walk must equal its back link.
 */
bool fathom_gdb_item_stayed(const struct fathom_gdb_pair *p, size_t i);

#endif
