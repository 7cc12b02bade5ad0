/* SPDX-License-Identifier: MIT */
/*
 * Naming the stubs of the procedure linkage table (`puts@plt`), which have no symbols: by the GOT
 * slot that a stub jumps through, and the relocation for that slot (x86-64 psABI 5.2, i386 psABI,
 * AAELF64). What is not handled: files without section headers, and other processors.
 */
#ifndef FATHOM_PLT_H
#define FATHOM_PLT_H

#include "symbols.h"

/*
 * The stub at @svma: its bounds, and as name that of the function it calls, without "@plt". False
 * when there is no stub, or what it calls cannot be told.
 */
bool fathom_plt_at(const struct fathom_symbol_set *set, uint64_t svma,
		   struct fathom_symbol_hit *ret);

#endif
