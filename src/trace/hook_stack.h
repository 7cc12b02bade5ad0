/* SPDX-License-Identifier: MIT */
/*
 * Stacks of the hook of system calls that a program makes in stubs (syscall_linked.h). It runs on
 * the program's stack only where that is known to have room: on the first thread's, and on one that
 * clone3(2) was reported; of others nobody knows how many bytes below the stack pointer are whose.
 * There each thread has a stack of ours, on which all signals are blocked.
 */
#ifndef FATHOM_TRACE_HOOK_STACK_H
#define FATHOM_TRACE_HOOK_STACK_H

#include <stdbool.h>
#include <stdint.h>

/* Notes that the calling thread's stack is from @low to @high. */
void fathom_hook_stack_set_room(uint64_t low, uint64_t high);

/* Notes that a thread is about to be made whose stack is the @size bytes at @low. */
void fathom_hook_stack_note(uint64_t low, uint64_t size);

/*
 * Called in the hook, by a thread of the program that was at @sp: finds what its stack is, or makes
 * it one of ours, if nothing is known yet.
 *
 * Safety: as-safe
 */
void fathom_hook_stack_find(uint64_t sp);

/*
 * Returns whether the calling thread is known to have room below @sp.
 *
 * Safety: as-safe
 */
bool fathom_hook_stack_has_room(uint64_t sp);

/* Called in the child of a fork(): the stack of ours is its parent's thread's. */
void fathom_hook_stack_forget(void);

#endif
