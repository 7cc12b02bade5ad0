/* SPDX-License-Identifier: MIT */
/*
 * The ends of stacks that no call frame information marks, by the code that stands there:
 * - glibc's __start_context(), or the code of i386 that has no name, to which the function of
 *   makecontext() returns;
 * - the system call exit, to which the function of a thread returns: in musl's __clone(), in Go's
 *   runtime.clone(), and wherever a program calls clone() itself.
 *
 * Not handled: code that ends a thread by a call of a function.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_UNWIND_ENDS_H
#define FATHOM_UNWIND_ENDS_H

#include "safe/base/reader.h"
#include "safe/unwind/registers.h"

/*
 * Words at the outer end of a stack among which a return address of 0 can be the last one. Those
 * who make stacks leave some words above it.
 */
#define FATHOM_OUTERMOST_WORDS 64

/* Returns whether @pc, at which no call ends, is the start of glibc's __start_context(). */
bool fathom_is_context_end(const struct fathom_unwind_arch *arch, const struct fathom_reader *code,
			   uint64_t pc);

/*
 * Returns whether the code at @pc does nothing but end its thread by a system call. Its caller
 * stays unknown: ask this only for code whose callers nothing else tells.
 */
bool fathom_is_thread_end(const struct fathom_unwind_arch *arch, const struct fathom_reader *code,
			  uint64_t pc);

/* Returns whether the code before the call that ends at @pc clears the frame pointer for it. */
bool fathom_clears_frame_pointer(const struct fathom_unwind_arch *arch,
				 const struct fathom_reader *code, uint64_t pc);

#endif
