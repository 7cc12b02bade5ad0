/* SPDX-License-Identifier: MIT */
/*
 * The registry of published code (safe/jit/registry.h) of another process, or of a core, as items
 * of the same form as those of GDB's lists: its symbol files are of the same kind.
 */
#ifndef FATHOM_JIT_REGISTRY_LIST_H
#define FATHOM_JIT_REGISTRY_LIST_H

#include "host/jit/gdb_list.h"

/*
 * Appends the symbol files of the registry with its head at @head, all of one moment, sorted by
 * address. *@ret_is_on: it is used; otherwise GDB's list of the same object tells of the code. A
 * head of an unknown version is not used. FATHOM_E_CORRUPT if it leads astray; FATHOM_E_CHANGED if
 * its tables went away while they were read, each time; FATHOM_E_LIMIT; FATHOM_E_MEMORY.
 */
fathom_err fathom_registry_walk(const struct fathom_reader *r, uint64_t head,
				struct fathom_gdb_items *items, bool *ret_is_on);

/*
 * Returns whether the symbol file of @item, of a registry, still has its serial number: what was
 * read of it before is right.
 */
bool fathom_registry_stays(const struct fathom_reader *r, const struct fathom_gdb_item *item);

/*
 * Returns when the function at @avma was published, by the symbol file @file of a registry: a
 * number that no other function has; 0 if there is none.
 */
uint64_t fathom_registry_since(struct fathom_bytes file, uint64_t avma);

#endif
