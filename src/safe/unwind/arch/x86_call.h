/* SPDX-License-Identifier: MIT */
/*
 * Calls of x86-64 and i386, by their bytes.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_UNWIND_ARCH_X86_CALL_H
#define FATHOM_UNWIND_ARCH_X86_CALL_H

#include "safe/unwind/registers.h"

/*
 * Returns whether a near call ends at the end of the @size bytes of @code: e8 with 4 bytes, or
 * ff /2 of each length (Intel SDM, volume 2, 2.1). Prefixes stand before it and do not matter.
 */
bool fathom_x86_ends_with_call(const uint8_t *code, size_t size);

/* Returns whether it can be e8; *@ret is how far from the end, modulo 2^64, its target is. */
bool fathom_x86_ends_with_direct_call(const uint8_t *code, size_t size, uint64_t *ret);

/*
 * Returns whether @code, a function, may have a jump to elsewhere: eb, e9, 0f 80 to 8f, or ff /4
 * (JMP, Jcc), at any byte. Conditional jumps by one byte do not count.
 */
bool fathom_x86_may_jump_out(struct fathom_bytes code);

#endif
