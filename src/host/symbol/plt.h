/* SPDX-License-Identifier: MIT */
/*
 * Names the stubs of the procedure linkage table (`puts@plt`), which have no symbols, by the GOT
 * slot that a stub jumps through and the relocation for that slot (x86-64 psABI 5.2, i386 psABI,
 * AAELF64). Not handled: files without section headers, and other processors.
 */
#ifndef FATHOM_SYMBOL_PLT_H
#define FATHOM_SYMBOL_PLT_H

#include "host/symbol/tables.h"

/*
 * Finds the stub at @svma: its bounds and, as its name, that of the function it calls, without
 * "@plt". Returns false if there is no stub, or if its function is unknown. @symbols is an index of
 * @set, which saves passes over it, or NULL.
 */
bool fathom_plt_at(const struct fathom_symbol_set *set, const struct fathom_symbol_index *symbols,
		   uint64_t svma, struct fathom_symbol_hit *ret);

/* Finds the GOT slot that the stub which starts at @svma jumps through; false if there is none. */
bool fathom_plt_slot(const struct fathom_object *o, uint64_t svma, uint64_t *ret_slot);

/* Returns whether @svma is in a section of stubs. */
bool fathom_plt_holds(const struct fathom_object *o, uint64_t svma);

#endif
