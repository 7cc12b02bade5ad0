/* SPDX-License-Identifier: MIT */
/*
 * Which symbol GNU addr2line 2.40 shows for an address, for the personality:
 *
 * - Of the symbols of the section that holds the address, the one that starts last at or before it
 *   wins, however long it is; of several that start together the longest, where no size counts as
 * 1; of those the first in the table.
 * - Variables, sections and files do not count. Nor do hidden, local, untyped symbols without a
 *   size, which the annobin plug-ins of compilers leave behind.
 * - The table is that of the separate debug file, if there is one. Where it has no symbol for the
 *   address, the table is .symtab of the file itself or, if that is empty, .dynsym.
 * - The source file of a symbol is the STT_FILE before it in the table. A symbol that is not local
 *   has none after a second STT_FILE: such symbols come after all local ones.
 *
 * GNU remembers the symbol that it found last and shows it as long as it reaches the next address,
 * even if another starts nearer. Here the answer never depends on what was asked before.
 */
#ifndef FATHOM_SYMBOL_GNU_RULES_H
#define FATHOM_SYMBOL_GNU_RULES_H

#include "host/symbol/tables.h"

/* The numbers of the tables that count, or FATHOM_NONE. */
struct fathom_gnu_tables {
	uint32_t separate; /* .symtab of the debug file */
	uint32_t own;
};

struct fathom_gnu_tables fathom_gnu_tables(const struct fathom_symbol_set *set);

/* Returns whether section @section of the object of @table is that section of the main file. */
bool fathom_gnu_same_section(const struct fathom_symbol_set *set, uint32_t table, uint32_t section);

/* Returns whether @s counts at all. */
bool fathom_gnu_counts(const struct fathom_symtab *t, const struct fathom_symbol *s);

/*
 * Finds the address of symbol @s of table @table, and its section in the table's object; returns
 * false if it has none. A function descriptor (.opd of 64-bit PowerPC) has the address of its code,
 * and a size that is the descriptor's counts as none.
 */
bool fathom_gnu_place(const struct fathom_symbol_set *set, uint32_t table, struct fathom_symbol *s,
		      uint64_t *ret_svma, struct fathom_symbol_region *ret_region);

/* The state of a pass over a table that keeps track of source files. */
struct fathom_gnu_files {
	uint32_t file; /* symbol of the file that began last; 0: none */
	bool symbol;   /* there was a symbol that is no file */
	bool late;     /* a file began after such a symbol */
};

/* Takes the next symbol of the table, number @i; returns whether it is a file. */
bool fathom_gnu_files_next(struct fathom_gnu_files *f, uint32_t i, const struct fathom_symbol *s);

/* Returns the symbol of the file that @s, the symbol taken last, is from; 0: none. */
uint32_t fathom_gnu_files_of(const struct fathom_gnu_files *f, const struct fathom_symbol *s);

/*
 * Returns the name of symbol @i with its version; data is NULL for 0. The file that linkers make up
 * for their own symbols has an empty name.
 */
struct fathom_str fathom_gnu_name(const struct fathom_symtab *t, uint32_t i);

/* Finds the symbol at @svma by a pass over the tables; returns false if there is none. */
bool fathom_gnu_scan(const struct fathom_symbol_set *set, uint64_t svma,
		     struct fathom_symbol_hit *ret);

#endif
