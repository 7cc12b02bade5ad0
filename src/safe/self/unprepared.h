/* SPDX-License-Identifier: MIT */
/*
 * Naming an address of a module that was not prepared, by what the loader and the module itself
 * have in memory: PT_DYNAMIC, its symbol table, its strings and hash tables (gABI, chapter 5), its
 * build-id. All of it is copied out by reads that cannot fault: it may be damaged, or go away
 * meanwhile.
 *
 * What is not handled: symbols without a size name their own address only, for here nothing says
 * where they end.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_SELF_UNPREPARED_H
#define FATHOM_SELF_UNPREPARED_H

#include "fathom/self.h"
#include "safe/elf/symtab.h"

/* Where the parts of a module's dynamic symbol table are, avma; 0 where there is none. */
struct fathom_self_dynamic {
	uintptr_t start; /* of the module: what its pointers may lead to */
	uintptr_t end;
	uint64_t bias;
	uint64_t symbols;
	uint64_t strings;
	uint64_t strings_size;
	uint64_t hash;
	uint64_t gnu_hash;
};

/* Reads PT_DYNAMIC at @avma of the module that is at @start to @end. */
bool fathom_self_read_dynamic(uintptr_t avma, uintptr_t start, uintptr_t end, uint64_t bias,
			      struct fathom_self_dynamic *ret);

/* The symbol that names @pc: its start (svma), size, and name in @buf; false when there is none. */
bool fathom_self_dynamic_symbol(const struct fathom_self_dynamic *d, uintptr_t pc, char *buf,
				size_t cap, struct fathom_symbol *ret, struct fathom_str *ret_name);

/* Answers for @pc into @ret, whose address is set; returns whether it has a name. */
bool fathom_self_answer_from_memory(uintptr_t pc, struct fathom_self_answer *ret);

#endif
