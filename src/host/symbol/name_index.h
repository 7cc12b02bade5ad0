/* SPDX-License-Identifier: MIT */
/*
 * The symbols of a table by name, for tables that the dynamic linker has no hash of. Made when
 * names are looked up a second time: the first time, a pass over the table is as cheap.
 */
#ifndef FATHOM_SYMBOL_NAME_INDEX_H
#define FATHOM_SYMBOL_NAME_INDEX_H

#include "host/base/memory.h"
#include "safe/elf/symtab.h"

struct fathom_name_index {
	struct fathom_memory *memory; /* counts the index */
	uint64_t bytes;
	uint32_t *first; /* by hash: the first symbol, 0 for none */
	uint32_t *next;  /* by symbol: the next one with such a hash */
	uint32_t mask;   /* for hashes */
};

/* Returns NULL if it does not fit memory or the budget. */
struct fathom_name_index *fathom_name_index_create(struct fathom_memory *m,
						   const struct fathom_symtab *t);
void fathom_name_index_destroy(struct fathom_name_index *x);

/*
 * Returns the first symbol that may be called @name, without a version, or 0; next has the others.
 */
uint32_t fathom_name_index_first(const struct fathom_name_index *x, struct fathom_str name);

#endif
