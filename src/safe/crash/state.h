/* SPDX-License-Identifier: MIT */
/*
 * The crash handler's state. The host prepares it (host/crash/install.c); the handler reads it, and
 * writes only what is marked so.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_CRASH_STATE_H
#define FATHOM_CRASH_STATE_H

#include <signal.h>
#include <stdatomic.h>

#include "safe/base/limits.h"
#include "safe/crash/own_exception.h"
#include "safe/self/table.h"

struct fathom;

/* Signals that can be handled have lower numbers. */
#define FATHOM_CRASH_SIGNALS 32
/* Longest path of a report, with its NUL. */
#define FATHOM_CRASH_PATH 4096
/*
 * Bytes of the stack on which a report is made. The line about a crash meanwhile is made on its
 * lower half, because the signal frame of that crash may be on the upper one.
 */
#define FATHOM_CRASH_STACK 131072

/*
 * Whose turn it is to report: TURN_DONE or not, and below it the number of the thread. 0: nobody's,
 * also while a handler that was there before runs, which may take long or jump away. The turn lies
 * in a page that fork() empties, so a child does not wait for threads that it does not have.
 */
#define TURN_DONE (UINT64_C(1) << 32) /* the report is written: the process is about to end */

/* A prepared handler. */
struct fathom_crash {
	const struct fathom_self *self;
	struct fathom *session;
	int (*handle_sigbus)(struct fathom *session, const void *address);
	uint64_t abort_text; /* avma of glibc's __abort_msg; 0: there is none */
	uint64_t libc;       /* avma at which the file that has it is mapped */
	struct fathom_own_libraries cxx;
	uint32_t signals;                /* bit n: signal n is handled */
	int fd;                          /* of the report */
	uint8_t *stack;                  /* FATHOM_CRASH_STACK bytes, to make a report on */
	_Atomic uint64_t *turn;          /* written by handlers, as all that follows is */
	char program[FATHOM_CRASH_PATH]; /* path of the program */
	char path[FATHOM_CRASH_PATH];    /* pattern of the report's path; "": fd is used */
	struct sigaction old[FATHOM_CRASH_SIGNALS]; /* what was installed before; never changed */
	_Atomic uint32_t spent; /* bit n: old[n] was to be called once (SA_RESETHAND), and was */
	/* The last report: what comes again from there is not reported again. */
	uint64_t last_pc;
	uint64_t last_address;
	uint32_t n_reports;
	/* Frames of the report. Pages that no frame is in are never touched. */
	uint64_t pcs[FATHOM_MAX_CRASH_FRAMES];
	uint8_t kinds[FATHOM_MAX_CRASH_FRAMES];
	uint8_t trusts[FATHOM_MAX_CRASH_FRAMES];
};

/*
 * All mutable state at file scope that the crash handler has: a signal handler is given no pointer
 * of ours.
 */
struct fathom_crash_state {
	_Atomic(struct fathom_crash *) prepared; /* NULL: not installed */
	/* Number of the thread-specific key that frees threads' stacks, + 1; 0: not made yet. */
	_Atomic uint32_t key;
};

extern struct fathom_crash_state fathom_crash_state;

/* The handler: for sigaction() with SA_SIGINFO. */
void fathom_crash_handle(int number, siginfo_t *info, void *context);

#endif
