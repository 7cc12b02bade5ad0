/* SPDX-License-Identifier: MIT */
/*
 * The signal actions and masks of a program whose system calls are dispatched (user_dispatch.h).
 * The kernel has other actions: each handler is one of ours, on the thread's signal stack of ours
 * (dispatch_task.h), with all signals blocked, and brings the thread to the program's handler
 * (signal_frame.h). SIGSYS is ours, and is never blocked while the program runs. Everything here is
 * as-safe.
 */
#ifndef FATHOM_TRACE_PROGRAM_SIGNALS_H
#define FATHOM_TRACE_PROGRAM_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#include "trace/dispatch_task.h"
#include "trace/linked.h"

/* Handlers of signals, as the kernel calls them. */
typedef void (*fathom_signal_handler)(int number, siginfo_t *info, void *context);

/*
 * Makes call @number of the thread of @task, with @args, if it is about masks, actions or stacks of
 * signals: the program is told what it expects, and @u, to which our handler returns, becomes what
 * the call has made of it. Returns false, and makes no call, if it is about something else.
 */
bool fathom_program_signals_make(long number, const uint64_t args[6],
				 struct fathom_dispatch_task *task, ucontext_t *u,
				 long *ret_result);

/* Replaces the masks that call @number waits with, as @args say, by copies without SIGSYS. */
void fathom_program_signals_clean(long number, uint64_t args[6], uint64_t copies[3]);

/*
 * Gives the thread of @task, to whose context @u our handler returns, the signal @info, as the
 * kernel would; @is_forced: it cannot wait. Of a thread without task, @task is NULL, and the
 * handler of the program is called before this returns.
 */
void fathom_program_signals_deliver(struct fathom_dispatch_task *task, ucontext_t *u,
				    const siginfo_t *info, bool is_forced);

/* Keeps the SIGSYS @info until the program can take it; gives it then. */
void fathom_program_signals_keep(struct fathom_program_signals *signals, const siginfo_t *info);
bool fathom_program_signals_have_pending(const struct fathom_program_signals *signals);
void fathom_program_signals_deliver_pending(struct fathom_dispatch_task *task, ucontext_t *u);
/* Makes the kernel send it again, once the thread does not block SIGSYS any more. */
void fathom_program_signals_send_pending(struct fathom_program_signals *signals);

/*
 * Makes @handler the kernel's for SIGSYS and @others for what else the program handles; both return
 * to @restorer.
 */
void fathom_program_signals_begin(fathom_signal_handler handler, fathom_signal_handler others,
				  void (*restorer)(void));

/* Gives the kernel the program's actions again, but for SIGSYS. */
void fathom_program_signals_end(void);

/*
 * A child of vfork() has the memory, but actions of its own. Puts back what it has changed, as
 * @lent says; has it know of no action for SIGSYS.
 */
void fathom_program_signals_restore(const struct fathom_program_lent *lent);
void fathom_program_signals_clear(struct fathom_program_lent *lent);

/* Called in the child of a fork(), which has no actions of its parent, or all. */
void fathom_program_signals_begin_child(struct fathom_program_signals *signals,
					bool has_no_actions);

/*
 * Called before execve() is made, by which a program inherits what was said of SIGSYS; what the
 * code after that makes of it is ours again.
 */
void fathom_program_signals_execute(void);
/* Takes that back: the call is not made. */
void fathom_program_signals_not_executed(void);

/* Notes the mask that call @number waits with, as @args say: a signal has interrupted it. */
void fathom_program_signals_note_wait(struct fathom_program_signals *signals, long number,
				      const uint64_t args[6]);

/* Returns whether the program has an action for SIGSYS, or ignores it. */
bool fathom_program_signals_have_action(void);

/*
 * Gives SIGSYS back to the program in the calling thread, which is dispatched no more once our
 * handler has returned to @u. With @is_all, no thread of the process is; else other threads are,
 * and the program has no action.
 */
void fathom_program_signals_leave(struct fathom_program_signals *signals, ucontext_t *u,
				  bool is_all);

#endif
