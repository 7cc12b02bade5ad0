/* SPDX-License-Identifier: MIT */
/*
 * Registers of the calling thread. One file for each machine; own_context_none.c is for the others.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_SELF_OWN_CONTEXT_H
#define FATHOM_SELF_OWN_CONTEXT_H

#include "fathom/death.h"
#include "safe/unwind/registers.h"

/* Returns the machine whose stacks can be walked here; EM_NONE: none. */
uint32_t fathom_own_context_machine(void);

/* Reads the registers in @context, the ucontext_t of a signal handler. */
void fathom_own_context(const void *context, struct fathom_registers *ret);

/*
 * Returns whether @context is that of a fault by which the processor could not fetch the
 * instruction at its pc: nothing is there, or nothing that may be executed.
 */
bool fathom_own_context_cannot_fetch(const void *context);

/*
 * Returns how the instruction of @context, that of SIGSEGV or SIGBUS, accessed memory:
 * FATHOM_ACCESS_UNKNOWN if the processor does not tell.
 */
enum fathom_access fathom_own_context_access(const void *context);

/*
 * Returns whether the instruction at the interrupted @pc could not be fetched, where @sp is the
 * stack pointer of the signal's frame.
 */
bool fathom_own_frame_cannot_fetch(uintptr_t sp, uint64_t pc);

/* Returns the thread pointer of the calling thread; 0: this machine's is not known. */
uint64_t fathom_own_thread_pointer(void);

/* Returns @pc without the signature that aarch64's return addresses may have. */
uintptr_t fathom_own_strip(uintptr_t pc);

#endif
