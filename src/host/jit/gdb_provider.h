/* SPDX-License-Identifier: MIT */
/*
 * Names and lines of code that a space has registered with GDB's JIT interface: its symbol files
 * are read from memory, and answer as any other ELF file does.
 *
 * The program is not stopped. What an answer was made from is read twice, and the list between: an
 * answer leaves only when its entry was in the list with that symbol file. That there is none
 * leaves only after a walk that cannot have missed one. What has changed is made anew, a few times.
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
	struct fathom_gdb_known_array known; /* what is known of each of them */
	struct fathom_code_table table; /* orders: n - number in known, as newer ones come first */
	bool is_whole;                  /* the table: it did not outgrow the budget */
	struct fathom_memory *memory;
};

/* Prepares @g, all zero. */
void fathom_gdb_jit_init(struct fathom_gdb_jit *g, struct fathom_memory *m);
void fathom_gdb_jit_deinit(struct fathom_gdb_jit *g);

/* Finds the lists of all modules of @p. FATHOM_E_MEMORY. */
fathom_err fathom_gdb_jit_find(struct fathom_gdb_jit *g, const struct fathom_jit_process *p);

/*
 * Makes modules of all symbol files of the lists, *@ret_n of them: of each that is in a list all
 * the time, of none that is not. Where that cannot be told, *@ret_changed, and some may be missing.
 * Of lists that cannot be read to their ends there are no files. FATHOM_E_MEMORY.
 */
fathom_err fathom_gdb_jit_open(struct fathom_gdb_jit *g, const struct fathom_jit_process *p,
			       size_t *ret_n, bool *ret_changed);

/* The module of symbol file @i, the newest first; NULL when it cannot be had. */
struct fathom_module *fathom_gdb_jit_module(const struct fathom_gdb_jit *g, size_t i);

/* The number of the symbol file that has code at @avma, g->known.n for none. */
size_t fathom_gdb_jit_number(const struct fathom_gdb_jit *g, uint64_t avma);

/* Closes modules when there are many. */
void fathom_gdb_jit_trim(struct fathom_gdb_jit *g);

/* Answers those of @rest that are in code of the lists, and takes them out. FATHOM_E_MEMORY. */
fathom_err fathom_gdb_jit_answer(struct fathom_gdb_jit *g, const struct fathom_jit_process *p,
				 struct fathom_rest *rest);

#endif
