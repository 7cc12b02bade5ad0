/* SPDX-License-Identifier: MIT */
/*
 * A run of a program whose published code is checked. One thread traces all threads of the program:
 *
 * - Threads run freely, but for stops at system calls: mappings change there, and a thread in one
 *   need not be stopped.
 * - A thread that enters published code faults, because the pages are closed (closed.h), and waits
 *   for its turn.
 * - In a turn (turn.c) all other threads are stopped, and the one is stepped until it has left
 *   published code, or has run a slice.
 */
#ifndef FATHOM_CHECK_CHECKER_H
#define FATHOM_CHECK_CHECKER_H

#include "host/check/closed.h"
#include "host/check/dispositions.h"
#include "host/check/interfaces.h"
#include "host/check/shadow.h"

/* A thread of the program, or of a child that shares its memory. */
struct fathom_checked_task {
	pid_t tid;
	bool is_stopped;
	bool is_listening; /* stopped by a signal such as SIGSTOP */
	bool is_unknown;   /* nobody has told yet whose child it is */
	bool in_call;      /* in a system call: a stop follows before it runs on */
	bool has_event;    /* event is to be handled */
	bool wants_turn;   /* it has faulted in published code, or its slice is over */
	bool is_stepping;  /* its slice is over */
	bool from_signal;  /* the last system call was the return of a signal handler */
	int event;         /* status of waitpid(2) */
	int signal;        /* to be delivered when it goes on; 0: none */
	long call;         /* that it is in */
	uint64_t arguments[6];
	struct fathom_disposition action; /* of rt_sigaction() */
	bool is_child;                    /* it has signal handlers of its own */
	struct fathom_shadow shadow;
};

struct fathom_checker {
	struct fathom_shadow_work work; /* first: found() is given it */
	struct fathom *session;
	struct fathom_tracee tracee;
	struct fathom_target *target;
	struct fathom_published *published;
	struct fathom_interfaces interfaces;
	struct fathom_closed closed;
	struct fathom_dispositions dispositions;
	struct {
		FATHOM_ARRAY_OF(struct fathom_checked_task *);
	} tasks;
	struct fathom_jit_check_options options;
	size_t last_turn;     /* index of the task that had it */
	bool owes_others;     /* a slice is over: others are to run before the next */
	bool modules_changed; /* a file was mapped as code */
	bool closed_late;     /* code was found that is not closed yet */
	bool is_started;      /* the program has replaced this one's copy */
	bool has_ended;
	int status; /* how it ended */
	fathom_err err;
	struct fathom_errinfo *reterr;
};

/* events.c ----------------------------------------------------------------------------------- */

struct fathom_checked_task *fathom_checker_task(const struct fathom_checker *c, pid_t tid);
/* Adds a task; NULL without memory. */
struct fathom_checked_task *fathom_checker_add(struct fathom_checker *c, pid_t tid);
void fathom_checker_remove(struct fathom_checker *c, struct fathom_checked_task *task);

/* Takes note of @status of thread @tid, to be handled later. */
void fathom_checker_note(struct fathom_checker *c, pid_t tid, int status);
/* Handles the event of @task, which may end it. */
void fathom_checker_handle(struct fathom_checker *c, struct fathom_checked_task *task);

/* Lets @task run on, up to its next system call. */
void fathom_checker_resume(struct fathom_checked_task *task);

/* turn.c ------------------------------------------------------------------------------------- */

/* Steps @task, which has faulted in published code, until it has left it or its slice is over. */
void fathom_checker_turn(struct fathom_checker *c, struct fathom_checked_task *task);

/* Stops all tasks but @task that run; those in system calls stop at their ends. */
void fathom_checker_stop_others(struct fathom_checker *c, const struct fathom_checked_task *task);
/* Lets them run on, but for those that have an event. */
void fathom_checker_resume_others(struct fathom_checker *c, const struct fathom_checked_task *task);

/* Steps @task over the instruction at a breakpoint, whose byte is @byte. */
void fathom_checker_step_over(struct fathom_checker *c, struct fathom_checked_task *task,
			      uint64_t avma, uint8_t byte);

/* Returns whether @task has stopped because its pc is in closed pages. */
bool fathom_checker_is_entry(const struct fathom_checker *c, const struct fathom_checked_task *task,
			     const struct user_regs_struct *regs);

#endif
