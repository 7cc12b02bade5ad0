/* SPDX-License-Identifier: MIT */
/*
 * Which symbol GNU addr2line 2.40 shows for an address, for the personality:
 *
 * - Of the symbols of the section that holds the address, the one that starts last at or before it,
 *   however long it is. Of several that start together the longest, where no size counts as 1; of
 *   those the first of the table.
 * - Variables, sections and files do not count, nor do hidden, local, untyped symbols without a
 *   size, which the annobin plug-ins of compilers leave behind.
 * - The table is that of the separate debug file, if there is one. In sections that this table has
 *   nothing to say about, it is .symtab of the file itself or, where that is empty, .dynsym.
 * - The source file of a symbol is the STT_FILE before it in the table. A symbol that is not local
 *   has none once a second file began: such symbols stand behind all local ones.
 *
 * GNU remembers the symbol it found last and serves it as long as it reaches the next address, even
 * where another starts nearer. Here the answer never depends on what was asked before.
 */
#ifndef FATHOM_SYMBOL_GNU_RULES_H
#define FATHOM_SYMBOL_GNU_RULES_H

#include "host/symbol/tables.h"

/* The tables of a set that matter, by number; FATHOM_NONE where there is none. */
struct fathom_gnu_tables {
	uint32_t separate; /* .symtab of the debug file */
	uint32_t own;
};

struct fathom_gnu_tables fathom_gnu_tables(const struct fathom_symbol_set *set);

/* Whether section @section of the object that @table is of is that section of the main file. */
bool fathom_gnu_same_section(const struct fathom_symbol_set *set, uint32_t table, uint32_t section);

/* Whether @s counts at all. */
bool fathom_gnu_counts(const struct fathom_symtab *t, const struct fathom_symbol *s);

/*
 * Where symbol @s of table @table stands, in which section of the table's object; false when it is
 * nowhere. What names a function descriptor (.opd of 64-bit PowerPC) stands where the code is, and
 * a size that is the descriptor's counts as none.
 */
bool fathom_gnu_place(const struct fathom_symbol_set *set, uint32_t table, struct fathom_symbol *s,
		      uint64_t *ret_svma, struct fathom_symbol_region *ret_region);

/* The position of a pass over a table, for the source files in it. */
struct fathom_gnu_files {
	uint32_t file; /* the symbol of the file that began last, 0: none */
	bool symbol;   /* another symbol was there */
	bool late;     /* a file began behind another symbol */
};

/* Takes the next symbol of the table, number @i; returns whether it is a file. */
bool fathom_gnu_files_next(struct fathom_gnu_files *f, uint32_t i, const struct fathom_symbol *s);

/* The symbol of the file that @s, the symbol taken last, is from; 0: none. */
uint32_t fathom_gnu_files_of(const struct fathom_gnu_files *f, const struct fathom_symbol *s);

/*
 * The name of symbol @i, versions left in it; data is NULL for 0. The file that linkers make up for
 * their own symbols has an empty name.
 */
struct fathom_str fathom_gnu_name(const struct fathom_symtab *t, uint32_t i);

/* The symbol at @svma by a pass over the tables; false when there is none. */
bool fathom_gnu_scan(const struct fathom_symbol_set *set, uint64_t svma,
		     struct fathom_symbol_hit *ret);

#endif
