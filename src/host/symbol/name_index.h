/* SPDX-License-Identifier: MIT */
/*
 * The symbols of a table by their names: for tables that the dynamic linker has no hash of. Made
 * when names are asked for a second time; the first time a pass over the table is as cheap.
 */
#ifndef FATHOM_SYMBOL_NAME_INDEX_H
#define FATHOM_SYMBOL_NAME_INDEX_H

#include "host/base/memory.h"
#include "safe/elf/symtab.h"

struct fathom_name_index {
	struct fathom_memory *memory; /* that counts it */
	uint64_t bytes;
	uint32_t *first; /* by hash: the number of a symbol, 0 for none */
	uint32_t *next;  /* by number: the next symbol with such a hash */
	uint32_t mask;   /* of the hash */
};

/* NULL when there is no memory, or the budget has no room. */
struct fathom_name_index *fathom_name_index_create(struct fathom_memory *m,
						   const struct fathom_symtab *t);
void fathom_name_index_destroy(struct fathom_name_index *x);

/*
 * The first symbol that may be called @name, which has no version, or 0; the others are those that
 * next leads to.
 */
uint32_t fathom_name_index_first(const struct fathom_name_index *x, struct fathom_str name);

#endif
