/* SPDX-License-Identifier: MIT */
/*
 * The table of files that a session has mapped. A signal handler can search it.
 *
 * Reading a page of a mapping whose file was truncated, or whose disk fails, raises SIGBUS in the
 * thread that reads. The library installs no handler; a program's own handler may pass the address
 * to fathom_handle_sigbus(). If the address lies in a file of the table, the rest of that mapping
 * becomes zeros and the file is marked as cut. The reader goes on: every parser takes zeros. The
 * call that reads throws its result away when it finds the mark (fathom_target_end_call()).
 *
 * Entries are neither moved nor freed before the session ends. Each has a turn, odd while another
 * thread changes the entry. A handler may skip such an entry: a file stays in the table as long as
 * somebody reads it, so the entry that the handler looks for never changes.
 *
 * The host fills the table in: host/base/mapping.h.
 */
#ifndef FATHOM_BASE_MAPPED_H
#define FATHOM_BASE_MAPPED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One mapped file. */
struct fathom_mapped {
	_Atomic uint32_t turn;
	_Atomic bool is_cut;
	_Atomic uintptr_t start; /* 0: the entry is free */
	_Atomic uintptr_t end;
};

/* Entries come in pieces, each twice as large as the one before. */
#define FATHOM_MAPPED_PIECES 26
#define FATHOM_MAPPED_FIRST  32

struct fathom_mapped_table {
	_Atomic(struct fathom_mapped *) piece[FATHOM_MAPPED_PIECES];
	_Atomic uintptr_t page; /* bytes per page; set with the first entry */
	_Atomic uint32_t used;  /* entries in use */
	_Atomic uint32_t next;  /* where the search for a free entry starts */
	_Atomic uint32_t n_cut; /* entries ever marked as cut */
};

/* Returns the number of entries of piece @i. */
static inline uint32_t fathom_mapped_piece_size(uint32_t i)
{
	return (uint32_t)FATHOM_MAPPED_FIRST << i;
}

/* Marks the file that is mapped at @address as cut; false if there is none. For signal handlers. */
bool fathom_mapped_cut(struct fathom_mapped_table *t, uintptr_t address);

/* Returns how many files were ever cut. */
static inline uint32_t fathom_mapped_cuts(struct fathom_mapped_table *t)
{
	return atomic_load_explicit(&t->n_cut, memory_order_acquire);
}

/* Returns whether @m, which may be NULL, was cut. */
static inline bool fathom_mapped_is_cut(struct fathom_mapped *m)
{
	return m && atomic_load_explicit(&m->is_cut, memory_order_acquire);
}

#endif
