/* SPDX-License-Identifier: MIT */
/*
 * Where stacks of this process end: what is asked of a frame from which no rule leads further.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_SELF_OWN_END_H
#define FATHOM_SELF_OWN_END_H

#include "safe/self/table.h"
#include "safe/unwind/step.h"

/* The answer of an object to whether an address is in its text. */
enum fathom_own_text { FATHOM_OWN_TEXT_UNKNOWN, FATHOM_OWN_TEXT_NOT, FATHOM_OWN_TEXT_IN };

/*
 * Returns whether @avma is in an executable segment of an object, which may be gone from memory: of
 * no object, or where the program headers are not after the ELF header, as tools put them that
 * change files, it is unknown.
 */
enum fathom_own_text fathom_own_find_text(uintptr_t avma);

/*
 * Returns whether a return address of 0 below @sp ends a stack: it is among the outermost words,
 * and nothing can be read after them.
 */
bool fathom_own_is_outermost(uintptr_t sp);

/*
 * Returns whether the frame @r, from which nothing leads on, is the outermost one of its stack: by
 * the code that it is in. @is_return: its pc is a return address.
 */
bool fathom_own_is_end(const struct fathom_self *self, const struct fathom_unwind_arch *arch,
		       const struct fathom_step_memory *m, const struct fathom_registers *r,
		       bool is_return);

#endif
