/* SPDX-License-Identifier: MIT */
/*
 * An ELF file made of symbols from a jitdump or a perf map, so that searches of symbol tables cover
 * them too. It is 64-bit in the host's byte order and has one section for all memory, .symtab and
 * .strtab (gABI 4.1, chapter 4).
 */
#ifndef FATHOM_JIT_SYMBOL_FILE_H
#define FATHOM_JIT_SYMBOL_FILE_H

#include "host/file/object.h"

struct fathom_jit_code_symbol {
	uint64_t start; /* avma */
	uint64_t size;  /* bytes */
	struct fathom_str name;
};

/*
 * Makes the file @name of the @n @symbols, all functions; copies them. FATHOM_E_LIMIT over the
 * budget @m; FATHOM_E_MEMORY.
 */
fathom_err fathom_symbol_file_make(struct fathom_memory *m, const char *name,
				   const struct fathom_jit_code_symbol *symbols, size_t n,
				   struct fathom_object **ret);

#endif
