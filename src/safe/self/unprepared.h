/* SPDX-License-Identifier: MIT */
/*
 * Names an address of a module that was not prepared, or finds a name there, from what the loader
 * and the module have in memory: PT_DYNAMIC, symbol table, strings and hash tables (gABI, chapter
 * 5), build-id; by the bounds of its FDE where no symbol is. All of it is copied by reads that
 * cannot fault: it may be damaged, or go away at any time.
 *
 * Not handled: a symbol without a size names its own address only, since nothing here says where it
 * ends.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_SELF_UNPREPARED_H
#define FATHOM_SELF_UNPREPARED_H

#include "safe/elf/symtab.h"
#include "safe/self/table.h"

/* A module's dynamic symbol table: the avma of its parts; 0 for those that it lacks. */
struct fathom_self_dynamic {
	uintptr_t start; /* of the module: all pointers must lead into it */
	uintptr_t end;
	uint64_t bias;
	uint64_t symbols;
	uint64_t strings;
	uint64_t strings_size;
	uint64_t hash;
	uint64_t gnu_hash;
};

/* Reads PT_DYNAMIC at @avma of the module at [@start, @end). */
bool fathom_self_read_dynamic(uintptr_t avma, uintptr_t start, uintptr_t end, uint64_t bias,
			      struct fathom_self_dynamic *ret);

/* Finds the symbol that names @pc: its start (svma), size, and name in @buf. False if none does. */
bool fathom_self_dynamic_symbol(const struct fathom_self_dynamic *d, uintptr_t pc, char *buf,
				size_t cap, struct fathom_symbol *ret, struct fathom_str *ret_name);

/*
 * Finds the function or variable called @name that the module defines: its avma. Returns false if
 * there is none, or the module has no DT_GNU_HASH.
 */
bool fathom_self_dynamic_find(const struct fathom_self_dynamic *d, struct fathom_str name,
			      uint64_t *ret);

/* Answers for @pc into @ret, whose address is set. Returns whether it has a name. */
void fathom_self_answer_from_memory(uintptr_t pc, struct fathom_self_room *room);

#endif
