/* SPDX-License-Identifier: MIT */
/*
 * What a program whose system calls are dispatched (user_dispatch.h) has said of SIGSYS: its
 * action, and whether it blocks the signal. The kernel has another action, and never has SIGSYS
 * blocked. Everything here is as-safe.
 */
#ifndef FATHOM_TRACE_PROGRAM_SIGNALS_H
#define FATHOM_TRACE_PROGRAM_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#include "trace/linked.h"

/*
 * Makes call @number, with @args, if it is about masks, actions or stacks of signals, or hands them
 * on to another program: the kernel is given what has no SIGSYS in it, and the program told what it
 * expects. What the handler of the dispatch returns to, @u, is what the call has made of it.
 * Returns false, and makes no call, if it is about something else.
 */
bool fathom_program_signals_make(long number, uint64_t args[6], ucontext_t *u, long *ret_result);

/* Gives the program a SIGSYS that is its own: of kill(2), or of its own filter (seccomp(2)). */
void fathom_program_signals_deliver(int number, siginfo_t *info, void *context);

/*
 * Has @handler be the kernel's for SIGSYS, which returns to @restorer, and nobody block it.
 * @is_alone: the process has one thread.
 */
void fathom_program_signals_begin(void (*handler)(int number, siginfo_t *info, void *context),
				  void (*restorer)(void), bool is_alone);

/*
 * Returns what the process has said, and puts it back: a child of vfork() has the memory, and says
 * something else.
 */
struct fathom_program_actions fathom_program_signals_save(void);
void fathom_program_signals_restore(const struct fathom_program_actions *kept);

/* Called in the child of a fork(), which has no actions of its parent, or all. */
void fathom_program_signals_begin_child(bool has_no_actions);

/* Called before the program returns from a handler, whose frame is at @sp: its mask may have
 * SIGSYS. */
void fathom_program_signals_return(uint64_t sp);

/*
 * The signal by which glibc cancels threads (nptl, SIGCANCEL). At a cancellation point
 * (cancellation_point.h), glibc 2.41 acts on it only where the program's own `syscall` instruction
 * is, while we make the call elsewhere. So it has a handler of ours, which has the call given up
 * and sends the signal again: it arrives when the program stands at its instruction again.
 */
#define FATHOM_SIGCANCEL 32

/* Result of a call that was given up, as the kernel's ERESTARTSYS: it is to be made again. */
#define FATHOM_NOT_MADE (-512)

/* Called before a call at a cancellation point is made, which has tested @flags of its thread. */
void fathom_program_signals_begin_point(const uint32_t *flags);

/*
 * Called after it, and sends the signal again if it has come meanwhile: it is blocked until the
 * handler of the dispatch returns.
 */
void fathom_program_signals_end_point(void);

/* Returns whether the program has an action for SIGSYS, or ignores it. */
bool fathom_program_signals_have_action(void);

/*
 * Has SIGSYS be the program's in the calling thread, which is dispatched no more once the handler
 * has returned to @u. With @is_all, no thread of the process is; else other threads are, and the
 * program has no action.
 */
void fathom_program_signals_leave(ucontext_t *u, bool is_all);

/* Returns whether the program has SIGSYS blocked in the calling thread; says so. */
bool fathom_program_signals_are_blocked(void);
void fathom_program_signals_block(bool is_blocked);

#endif
