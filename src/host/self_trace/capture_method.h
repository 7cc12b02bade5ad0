/* SPDX-License-Identifier: MIT */
/*
 * How a process is traced that traces itself (self_reader.c): by ptrace(2), from outside
 * (self_attach.c, x86-64), by changes that it makes to its own text (self_text.c, aarch64), or, of
 * its system calls alone, by syscall user dispatch (self_dispatch.c, x86-64), or by rewriting its
 * instructions (self_rewrite.c, x86-64).
 */
#ifndef FATHOM_SELF_TRACE_CAPTURE_METHOD_H
#define FATHOM_SELF_TRACE_CAPTURE_METHOD_H

#include <stdbool.h>
#include <sys/types.h>

#include "fathom/trace.h"

/* Messages between a process and its reader, in memory that both share. */
struct fathom_self_trace_page {
	/*
	 * The thread that is in fathom_trace_start() or fathom_trace_stop(): what it asks the
	 * kernel for is not the program's. 0: none is.
	 */
	_Atomic int32_t busy;
	_Atomic uint32_t is_asked; /* 1: all that was recorded is to be told, it is the end */
	int32_t status;            /* of the process, as waitpid(2) will have it */
	_Atomic uint32_t
		is_told; /* 1: that was done, and the reader goes on with other processes */
};

/* A capture method: how a process is traced. */
struct fathom_capture_method {
	/* Prepares the process, before its reader is made, which has a copy of what this leaves. */
	fathom_err (*prepare)(const struct fathom_trace_options *options,
			      struct fathom_errinfo *reterr);
	/*
	 * Lets @reader, which lives and waits, trace the process. Frees what the reader has a copy
	 * of; with 0 that is all: there is no reader.
	 */
	fathom_err (*begin)(pid_t reader, struct fathom_errinfo *reterr);
	/* Called when the process is traced; NULL: there is nothing to do then. */
	void (*begun)(void);
	/* Reads what process @pid records, until it has ended or the options' control says so. */
	fathom_err (*read)(struct fathom *session, pid_t pid,
			   const struct fathom_trace_options *options,
			   struct fathom_self_trace_page *talk, struct fathom_errinfo *reterr);
	/*
	 * Stops the process, which has a reader, from recording. FATHOM_E_UNSUPPORTED: its text
	 * stays.
	 */
	fathom_err (*end)(struct fathom_errinfo *reterr);
	/* Frees what is left of the last time, if any; NULL: nothing ever is. */
	void (*forget)(void);
	/*
	 * Says whether what the calling thread calls is the tracer's own, and is not recorded;
	 * NULL: the reader knows by fathom_self_trace_page.busy.
	 */
	void (*silence)(bool is_silent);
	/* fathom_trace_thread() of a thread of the process */
	int (*change)(int change);
};

extern const struct fathom_capture_method fathom_capture_by_ptrace; /* x86-64 */
extern const struct fathom_capture_method
	fathom_capture_by_dispatch; /* x86-64, system calls alone */
extern const struct fathom_capture_method fathom_capture_by_rewriting; /* likewise */
extern const struct fathom_capture_method fathom_capture_by_text;      /* aarch64 */

/*
 * Returns the capture method by which a process with these options, or without any, is traced;
 * @is_again: the first was refused, NULL if there is no other.
 */
const struct fathom_capture_method *fathom_capture_method_choose(
	const struct fathom_trace_options *options, bool is_again);

/* Called when the process calls exit(), which is to have @status: waits until all is told. */
void fathom_self_trace_reader_exit(int status);

#endif
