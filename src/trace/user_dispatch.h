/* SPDX-License-Identifier: MIT */
/*
 * System calls of a program that records them itself, by syscall user dispatch (x86-64, Linux 5.11;
 * Documentation/admin-guide/syscall-user-dispatch.rst): of each call that an armed thread makes,
 * the kernel does nothing but to send SIGSYS. The handler, on a signal stack of ours
 * (dispatch_task.h), records the call and makes it, or has the thread make it, by instructions in
 * the one range that is exempt (the section fathom_tracer_syscalls), where all calls of the
 * runtime are.
 *
 * What the program says of its signals is kept here (program_signals.h): nothing of ours is on its
 * stacks, and nothing of its on ours.
 */
#ifndef FATHOM_TRACE_USER_DISPATCH_H
#define FATHOM_TRACE_USER_DISPATCH_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Starts to record the calls of the calling thread, and of those that it makes, by
 * fathom_trace_self_plans; others are asked to do the same by fathom_user_dispatch_ask(). @ended is
 * called by whichever thread ends the process, with its status as wait(2) has it. False: the kernel
 * has no such thing.
 */
bool fathom_user_dispatch_begin(void (*ended)(int status));

/* Asks thread @tid of this process to be armed, too, once it runs and does not block SIGSYS. */
void fathom_user_dispatch_ask(int32_t tid);

/*
 * Stops dispatching calls: each thread gives its signal stack back at its next call. The handler of
 * SIGSYS stays, and calls the program's; the last thread gives the others back.
 */
void fathom_user_dispatch_end(void);

/*
 * Says whether what the calling thread calls from now on is the tracer's: it is made, not recorded.
 */
void fathom_user_dispatch_set_own(bool is_own);

#endif
