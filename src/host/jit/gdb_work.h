/* SPDX-License-Identifier: MIT */
/* Types shared by answering from GDB's lists and registries, and by locating code in them. */
#ifndef FATHOM_JIT_GDB_WORK_H
#define FATHOM_JIT_GDB_WORK_H

#include "host/jit/gdb_provider.h"

/* Facts about one item. */
struct fathom_gdb_known {
	struct fathom_gdb_item item;
	struct fathom_range *code;    /* where its symbol file has code (avma) */
	struct fathom_module *module; /* of the symbol file; NULL: not needed yet */
	struct fathom_holder *holder; /* has module, for a locator; NULL: not located */
	uint64_t sum; /* of the bytes of its symbol file when code was read; 0: unreadable */
	uint32_t n_code;
	bool is_read;  /* code was read in this batch */
	bool is_other; /* code differs from what the table was made of */
	bool is_newer; /* a row that came after the table was made, instead of the one before */
};

/* The state of answering a batch, or of opening modules. */
struct fathom_gdb_asking {
	struct fathom_gdb_jit *g;
	const struct fathom_jit_process *p;
	struct fathom_unresolved *rest; /* NULL: opens modules instead of answering places */
	struct fathom_keyed *keyed;     /* index in known -> place */
	size_t n_keyed;
	uint32_t *left; /* places to answer again */
	size_t n_left;
	uint32_t *lost; /* places without an item, unless one was missed */
	size_t n_lost;
	uint64_t n_bytes; /* bytes of symbol files read so far */
	struct fathom_bytes_array scratch;
	fathom_err walked; /* the result of the last walk */
	bool is_whole;     /* the walk missed nothing that was in the lists all the time */
	bool is_astray;    /* the lists led astray twice, in the same way: they are damaged */
};

/* The most walks to get a whole one. */
#define FATHOM_GDB_MAX_WALKS 4

/* Walks all lists; most items of @before are likely still there. */
fathom_err fathom_gdb_walk(const struct fathom_gdb_asking *a, const struct fathom_gdb_items *before,
			   struct fathom_gdb_items *items);

/* Walks the lists until a walk is whole. */
fathom_err fathom_gdb_walk_again(struct fathom_gdb_asking *a);

/* Updates the known items and the table. */
fathom_err fathom_gdb_refresh(struct fathom_gdb_asking *a);

/* Makes the module of @k from its current symbol file; k->module is NULL if that fails. */
fathom_err fathom_gdb_refresh_module(struct fathom_gdb_asking *a, struct fathom_gdb_known *k);

/* Rereads the symbol files not yet read in this batch: they may have changed. */
fathom_err fathom_gdb_read_again(struct fathom_gdb_asking *a);

/*
 * Reads where the symbol file of @k has code; @data are its bytes, or NULL if they were not read
 * yet. An unreadable file has none.
 */
fathom_err fathom_gdb_read_code(struct fathom_gdb_asking *a, struct fathom_gdb_known *k,
				const uint8_t *data);

/*
 * Returns the index of what is known of an item equal to @item, by @sorted (avma -> index); @n:
 * none.
 */
size_t fathom_gdb_find_known(const struct fathom_gdb_jit *g, const struct fathom_keyed *sorted,
			     size_t n, const struct fathom_gdb_item *item);

/* Returns whether item @number and its symbol file, the source of answers, are unchanged. */
bool fathom_gdb_has_stayed(const struct fathom_gdb_asking *a, size_t number,
			   const struct fathom_gdb_pair *walks);

/* Returns whether the walk that found @now is whole, or found the same as the one before. */
bool fathom_gdb_is_whole(const struct fathom_gdb_asking *a, const struct fathom_gdb_items *before,
			 const struct fathom_gdb_items *now);

/* Returns whether the lists led astray because they change all the time. */
bool fathom_gdb_is_changing(const struct fathom_gdb_asking *a);

/* Returns whether a walk that ended by @err may succeed a moment later. */
bool fathom_gdb_may_pass(fathom_err err);

/* Notes what is wrong with the lists after all rounds have ended with @err. */
void fathom_gdb_note_walk(const struct fathom_gdb_asking *a, fathom_err err);

/* Returns a number that differs, in all likelihood, for other bytes. */
uint64_t fathom_gdb_sum_of(struct fathom_bytes bytes);

/* Counts a symbol file of @size bytes; fails if it may not be read. */
fathom_err fathom_gdb_check_size(struct fathom_gdb_asking *a, uint64_t size);

/* Reads the symbol file at @avma into scratch. */
fathom_err fathom_gdb_read_alone(struct fathom_gdb_asking *a, uint64_t avma,
				 struct fathom_bytes *bytes);

/* Returns the source of names that the symbol file of @item gives. */
enum fathom_source fathom_gdb_source_of(const struct fathom_gdb_item *item);

/* Returns what is known of item @i. */
struct fathom_gdb_known *fathom_gdb_known_at(const struct fathom_gdb_jit *g, size_t i);

#endif
