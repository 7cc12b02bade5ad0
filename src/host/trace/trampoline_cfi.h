/* SPDX-License-Identifier: MIT */
/*
 * How stacks go through code that is put into this process beside compiled code: call frame
 * information of compilers does not reach there. It is published as that of JIT code.
 */
#ifndef FATHOM_TRACE_TRAMPOLINE_CFI_H
#define FATHOM_TRACE_TRAMPOLINE_CFI_H

#include "fathom/jit.h"
#include "host/base/array.h"

/* Functions to publish together. All zero, there are none. */
struct fathom_code_functions {
	FATHOM_ARRAY_OF(struct fathom_jit_function);
};

/* Adds one; false without memory. @rule stays the caller's. */
bool fathom_code_functions_add(struct fathom_code_functions *f, uint64_t avma, uint64_t size,
			       const char *name, const struct fathom_jit_unwind *rule);

/* The published code. All zero, there is none. */
struct fathom_trampoline_cfi {
	FATHOM_ARRAY_OF(struct fathom_jit_arena *);
};

/*
 * Publishes @f, which are sorted by address. Those that lie @far bytes or more from
 * the one before begin another arena. @flags are those of the arenas. What fails is left out.
 */
void fathom_trampoline_cfi_publish(struct fathom_trampoline_cfi *rows,
				   const struct fathom_code_functions *f, uint64_t far,
				   uint32_t flags);
void fathom_trampoline_cfi_withdraw(struct fathom_trampoline_cfi *rows);

#endif
