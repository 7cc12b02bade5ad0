/* SPDX-License-Identifier: MIT */
/*
 * Code of x86-64 and i386 at the ends of stacks: members of struct fathom_unwind_arch.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_UNWIND_ARCH_X86_ENDS_H
#define FATHOM_UNWIND_ARCH_X86_ENDS_H

#include "safe/unwind/registers.h"

bool fathom_x86_64_is_context_end(struct fathom_bytes code);
bool fathom_i386_is_context_end(struct fathom_bytes code);

bool fathom_x86_64_is_thread_end(struct fathom_bytes code);
bool fathom_i386_is_thread_end(struct fathom_bytes code);

bool fathom_x86_clears_fp(struct fathom_bytes code);

#endif
