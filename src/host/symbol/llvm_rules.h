/* SPDX-License-Identifier: MIT */
/*
 * Which symbol llvm-symbolizer 19 shows for an address, for the personality:
 *
 * - Of all symbols that are defined in loaded sections, the one that starts last at or before the
 *   address wins; of several that start together the longest; of those the last in the table. If it
 *   has a size and ends before the address, there is none. One without a size names all up to the
 *   next symbol, even beyond its section.
 * - Functions, variables and untyped symbols count; mapping symbols and RISC-V's ".L0 " do not.
 * - The table is .symtab of the file itself or, if that is empty, .dynsym; never that of a separate
 *   debug file. Versions stay in the names.
 * - The source file of a local symbol is the STT_FILE before it in the table.
 */
#ifndef FATHOM_SYMBOL_LLVM_RULES_H
#define FATHOM_SYMBOL_LLVM_RULES_H

#include "host/symbol/tables.h"

/* Returns the number of the table that counts, or FATHOM_NONE. */
uint32_t fathom_llvm_table(const struct fathom_symbol_set *set);

/* Returns whether @s of table @t counts; then *@ret_svma is where it starts. */
bool fathom_llvm_counts(const struct fathom_symbol_table *t, const struct fathom_symbol *s,
			uint64_t *ret_svma);

/* Finds the symbol at @svma by a pass over the table; returns false if there is none. */
bool fathom_llvm_scan(const struct fathom_symbol_set *set, uint64_t svma,
		      struct fathom_symbol_hit *ret);

#endif
