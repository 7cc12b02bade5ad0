/* SPDX-License-Identifier: MIT */
/*
 * Frames of signals (x86-64), as the kernel makes them (arch/x86/kernel/signal_64.c). Everything
 * here is as-safe.
 */
#ifndef FATHOM_TRACE_SIGNAL_FRAME_H
#define FATHOM_TRACE_SIGNAL_FRAME_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#include "trace/dispatch_task.h"
#include "trace/linked.h"

/* The bit of @number in a mask of the kernel. */
static inline uint64_t fathom_signal_bit(int number)
{
	return UINT64_C(1) << (number - 1);
}

/* Returns the mask of @u, which the kernel has 8 bytes for; changes it. */
uint64_t fathom_signal_mask(const ucontext_t *u);
void fathom_signal_set_mask(ucontext_t *u, uint64_t mask);

/*
 * Makes the thread of @signals, whose context is @u, run the handler of @action for the signal
 * @info once our own handler returns: the handler finds what the kernel would have given it, where
 * the kernel would have put it. False: there is no room.
 */
bool fathom_signal_frame_enter(struct fathom_program_signals *signals, ucontext_t *u,
			       const siginfo_t *info, const struct fathom_program_action *action);

/*
 * Called before the program returns from a handler, whose frame's context is at @context: notes
 * what the frame says, and has the kernel keep @own as signal stack, and SIGSYS unblocked.
 */
void fathom_signal_frame_leave(struct fathom_program_signals *signals, uint64_t context,
			       const stack_t *own);

/* Plays sigaltstack(@stack, @old) for a thread whose stack pointer is @sp; each may be NULL. */
long fathom_signal_stack_change(struct fathom_program_signals *signals, uint64_t sp,
				const stack_t *stack, stack_t *old);

#endif
