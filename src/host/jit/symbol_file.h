/* SPDX-License-Identifier: MIT */
/*
 * An ELF file made of symbols that stood elsewhere, in a jitdump or a perf map: what searches
 * symbol tables searches these, too. It has the host's byte order and 64 bit, a section that stands
 * for all memory, .symtab and .strtab (gABI 4.1, chapter 4).
 */
#ifndef FATHOM_JIT_SYMBOL_FILE_H
#define FATHOM_JIT_SYMBOL_FILE_H

#include "host/file/object.h"

struct fathom_made_symbol {
	uint64_t start; /* avma */
	uint64_t size;  /* bytes */
	struct fathom_str name;
};

/*
 * Makes the file @name of the @n @symbols, functions all of them, which need not stay.
 * FATHOM_E_LIMIT when it does not fit the budget @m; FATHOM_E_MEMORY.
 */
fathom_err fathom_symbol_file_make(struct fathom_memory *m, const char *name,
				   const struct fathom_made_symbol *symbols, size_t n,
				   struct fathom_object **ret);

#endif
