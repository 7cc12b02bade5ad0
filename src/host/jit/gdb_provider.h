/* SPDX-License-Identifier: MIT */
/*
 * Names and lines of code that a program has registered with GDB's JIT interface. Its symbol files
 * are read from memory and answer like any ELF file.
 *
 * The program is not stopped. So a symbol file is read twice, and the list in between: an answer is
 * given only if its entry was in the list with that symbol file, and "no symbol file" only after a
 * walk that cannot have missed one. If something changed, it is tried again, a few times.
 */
#ifndef FATHOM_JIT_GDB_PROVIDER_H
#define FATHOM_JIT_GDB_PROVIDER_H

#include "host/base/array.h"
#include "host/jit/code_table.h"
#include "host/jit/gdb_list.h"
#include "host/jit/jit.h"

struct fathom_gdb_known;

struct fathom_gdb_known_array {
	FATHOM_ARRAY_OF(struct fathom_gdb_known);
};

struct fathom_gdb_jit {
	struct fathom_gdb_lists lists;
	struct fathom_gdb_items items;       /* of the last walk; the newest first */
	struct fathom_gdb_known_array known; /* known.items[i] is about items.items[i] */
	struct fathom_code_table table; /* orders: n - index in known, as newer ones come first */
	bool is_whole;                  /* the table fit the budget */
	struct fathom_memory *memory;
};

/* Prepares @g, all zero. */
void fathom_gdb_jit_init(struct fathom_gdb_jit *g, struct fathom_memory *m);
void fathom_gdb_jit_deinit(struct fathom_gdb_jit *g);

/*
 * Copies to @g, unless it has read something itself, what @from knows: then only what has changed
 * since is read again, as after an earlier batch. FATHOM_E_MEMORY.
 */
fathom_err fathom_gdb_jit_learn(struct fathom_gdb_jit *g, const struct fathom_gdb_jit *from,
				const struct fathom_jit_process *p);

/* Finds the lists of all modules of @p. FATHOM_E_MEMORY. */
fathom_err fathom_gdb_jit_find(struct fathom_gdb_jit *g, const struct fathom_jit_process *p);

/*
 * Makes modules of the *@ret_n symbol files in the lists: exactly those in a list all the time. If
 * that cannot be decided, sets *@ret_changed, and some may be missing. Lists not readable to their
 * ends have no files. FATHOM_E_MEMORY.
 */
fathom_err fathom_gdb_jit_open(struct fathom_gdb_jit *g, const struct fathom_jit_process *p,
			       size_t *ret_n, bool *ret_changed);

/* Returns the module of symbol file @i, the newest first; NULL if it could not be made. */
struct fathom_module *fathom_gdb_jit_module(const struct fathom_gdb_jit *g, size_t i);

/* Returns the index of the symbol file with code at @avma; g->known.n if there is none. */
size_t fathom_gdb_jit_number(const struct fathom_gdb_jit *g, uint64_t avma);

/* Closes modules if many are open. */
void fathom_gdb_jit_trim(struct fathom_gdb_jit *g);

/*
 * Locates code in the lists as they were when it was first asked. Its modules stay open and the
 * same.
 */
struct fathom_gdb_locator;

/* Begins to locate in the lists of @g, which is the locator's until its end. FATHOM_E_MEMORY. */
fathom_err fathom_gdb_locator_create(struct fathom_gdb_jit *g, const struct fathom_jit_process *p,
				     struct fathom_gdb_locator **ret);
/* Ends locating; @l may be NULL. */
void fathom_gdb_locator_destroy(struct fathom_gdb_locator *l);

/* Reads the lists, once: an address is looked up in them as they are now. FATHOM_E_MEMORY. */
fathom_err fathom_gdb_locator_begin(struct fathom_gdb_locator *l);

/*
 * Finds the symbol file with code at @avma and makes its module the holder of @ret; leaves @ret as
 * it is if there is none. FATHOM_E_MEMORY.
 */
fathom_err fathom_gdb_locator_find(struct fathom_gdb_locator *l, uint64_t avma,
				   struct fathom_place *ret);

/*
 * Walks the lists again. Returns whether each symbol file found so far is still there, with the
 * same bytes, and no other one has come that has code at an address that was looked up; false also
 * if that cannot be found out.
 */
bool fathom_gdb_locator_stayed(struct fathom_gdb_locator *l);

/*
 * Answers those of @rest that are in code of the lists, and removes them from @rest.
 * FATHOM_E_MEMORY.
 */
fathom_err fathom_gdb_jit_answer(struct fathom_gdb_jit *g, const struct fathom_jit_process *p,
				 struct fathom_unresolved *rest);

#endif
