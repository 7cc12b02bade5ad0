/* SPDX-License-Identifier: MIT */
/*
 * Tells which symbols name the function that debug information names. One function may have several
 * symbols at its address, and a linker or compiler that folds equal functions (ICF) leaves symbols
 * of other functions there: only debug information tells them apart.
 */
#ifndef FATHOM_SYMBOL_SPELLING_H
#define FATHOM_SYMBOL_SPELLING_H

#include "safe/index/block.h"

/*
 * Returns whether @symbol, which starts where the block does, is a name of the block's function:
 * one of its own names, also with a clone's suffix; one of them without a prefix that is reserved
 * to implementations (`malloc` for `__libc_malloc`); that of another variant of the same
 * constructor or destructor; or, if there is no linkage name, a mangled name that has the
 * function's name as a part.
 */
bool fathom_spelling_fits(const struct fathom_block_view *view, struct fathom_str symbol);

/*
 * Returns whether @other, a symbol at the address of @symbol, may be the name of another function:
 * it is no longer form of @symbol.
 */
bool fathom_spelling_differs(struct fathom_str symbol, struct fathom_str other);

#endif
