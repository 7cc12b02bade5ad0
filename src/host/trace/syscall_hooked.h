/* SPDX-License-Identifier: MIT */
/* Handles threads that are in the hook of system calls (src/trace/syscall_hook.h). */
#ifndef FATHOM_TRACE_SYSCALL_HOOKED_H
#define FATHOM_TRACE_SYSCALL_HOOKED_H

#include "host/trace/tasks.h"

/*
 * Thread @tid is to take a signal. If the hook is making a call for it, tells how that has ended,
 * and has the thread be where it would be without the hook: at its own instruction, or after it.
 * So handlers, restarted calls, the cancelling of threads and unwinders find what they know.
 */
void fathom_follow_end_hooked(struct fathom_follow *f, pid_t tid);
/*
 * Thread @tid has a fault. If the hook has it, which reads the program's memory, has it go on, and
 * returns true.
 */
bool fathom_follow_take_fault(const struct fathom_follow *f, pid_t tid);

#endif
