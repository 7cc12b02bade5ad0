/* SPDX-License-Identifier: MIT */
/*
 * State of each thread whose calls are dispatched (user_dispatch.h): a signal stack of its own,
 * which is the kernel's for that thread while it is dispatched, so that nothing of ours is on a
 * stack of the program. Its lowest part has what is known of the thread. No code of the program
 * runs on it (program_signals.h).
 *
 * A thread is known by its signal stack, which each signal's frame tells, not by its thread-local
 * storage: threads may share that.
 */
#ifndef FATHOM_TRACE_DISPATCH_TASK_H
#define FATHOM_TRACE_DISPATCH_TASK_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#include "trace/syscall_hook.h"
#include "trace/linked.h"

/* Bytes of a task, which begins at a multiple of them, and of its part that is no stack. */
#define FATHOM_DISPATCH_TASK  65536
#define FATHOM_DISPATCH_STATE 16384

/* Calls that are made on the program's stack at once: vfork() within children of vfork(). */
#define FATHOM_DISPATCH_INLINED 4

/* Kinds of calls that are made on the program's stack. */
enum fathom_dispatch_kind {
	FATHOM_DISPATCH_CALL,
	FATHOM_DISPATCH_I386,  /* int $0x80 */
	FATHOM_DISPATCH_VFORK, /* its child has the same stack */
	FATHOM_DISPATCH_EXEC,  /* the kernel has the program's SIGSYS meanwhile */
	FATHOM_DISPATCH_EXIT   /* does not return */
};

/* State of a thread's signals, as the program has set it. */
struct fathom_program_signals {
	stack_t stack;   /* sigaltstack(2); as the kernel keeps it */
	bool is_blocked; /* SIGSYS, as the program has it */
	bool is_pending; /* one has come meanwhile, with what is below */
	/*
	 * the mask of the call that a signal has just interrupted, if it waits with one of its own
	 */
	bool has_waited;
	uint64_t waited;
	int32_t code;
	int32_t pid;
	uint32_t uid;
	union sigval value;
};

/* Changes of the kept actions by a child that has its parent's memory. */
struct fathom_program_lent {
	uint64_t changed; /* signals: bits */
	struct fathom_program_actions before;
};

/* A call that is made on the program's stack, and has not returned yet. */
struct fathom_dispatch_inlined {
	struct fathom_trace_syscall_frame frame;
	struct fathom_trace_thread *thread; /* whose block it has; NULL: none */
	gregset_t registers;                /* the program's */
	uint64_t mask;                      /* likewise */
	uint64_t copies[3];                 /* what the kernel is given for masks with SIGSYS */
	enum fathom_dispatch_kind kind;
	int32_t tid; /* whose it is; 0: that is not known */
	bool is_recorded;
	bool is_unwound; /* where it goes on lies below the red zone, for who unwinds the stack */
	/* Of vfork(): what was said of signals before it. */
	struct fathom_program_signals signals;
	struct fathom_program_lent lent;
	struct fathom_program_lent *lent_before; /* that of the task */
};

struct fathom_dispatch_task {
	/* user_dispatch_x86_64.S knows the offsets of these. */
	stack_t own;      /* the signal stack that is ours */
	uint64_t mask;    /* which a new thread is to have */
	uint64_t args[6]; /* registers after the latest call on the program's stack */
	uint64_t behind;  /* where that goes on */

	_Atomic uint32_t state; /* enum fathom_dispatch_state */
	_Atomic int32_t tid;
	bool is_trapped;    /* a filter has judged that call */
	siginfo_t trapped;  /* by this signal */
	uint32_t n_inlined; /* those that have not returned yet */
	/* Where actions go that this task changes while its parent waits; NULL: it has none. */
	struct fathom_program_lent *lent;
	struct fathom_program_signals signals;
	struct fathom_dispatch_inlined inlined[FATHOM_DISPATCH_INLINED];
};

_Static_assert(sizeof(struct fathom_dispatch_task) <= FATHOM_DISPATCH_STATE, "");

enum fathom_dispatch_state {
	FATHOM_DISPATCH_FREE,
	FATHOM_DISPATCH_USED,
	FATHOM_DISPATCH_LEFT /* free once its thread has ended, or for that thread */
};

/* Returns the task of signal stack @stack, as a frame tells it; NULL: it is none of ours. */
struct fathom_dispatch_task *fathom_dispatch_task_of(const stack_t *stack);

/* Returns a task for thread @tid; for one that is not there yet, @tid is 0. NULL: no memory. */
struct fathom_dispatch_task *fathom_dispatch_task_take(int32_t tid);

/* Gives @task back. Its thread still runs if @has_thread, maybe on its stack. */
void fathom_dispatch_task_give(struct fathom_dispatch_task *task, bool has_thread);

/* Returns whether some thread has a task, beside that of @task. */
bool fathom_dispatch_task_others(const struct fathom_dispatch_task *task);

/* Called in the child of a fork(), whose one thread, @tid, has @task. */
void fathom_dispatch_task_begin_child(struct fathom_dispatch_task *task, int32_t tid);

#endif
