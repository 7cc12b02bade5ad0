/* SPDX-License-Identifier: MIT */
/*
 * Naming the stubs of the procedure linkage table (`puts@plt`), which have no symbols: by the GOT
 * slot that a stub jumps through, and the relocation for that slot (x86-64 psABI 5.2, i386 psABI,
 * AAELF64). What is not handled: files without section headers, and other processors.
 */
#ifndef FATHOM_SYMBOL_PLT_H
#define FATHOM_SYMBOL_PLT_H

#include "host/symbol/tables.h"

/*
 * Finds the stub at @svma: its bounds, and as name that of the function it calls, without "@plt".
 * False when there is no stub, or what it calls cannot be told. @symbols is an index of @set, which
 * saves passes over it; NULL: there is none.
 */
bool fathom_plt_at(const struct fathom_symbol_set *set, const struct fathom_symbol_index *symbols,
		   uint64_t svma, struct fathom_symbol_hit *ret);

/* Returns whether @svma is in a section of stubs. */
bool fathom_plt_holds(const struct fathom_object *o, uint64_t svma);

#endif
