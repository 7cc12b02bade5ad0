/* SPDX-License-Identifier: MIT */
/*
 * How a process is traced that traces itself (self_reader.c): the capture methods, and the table by
 * which one is chosen.
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

/* From outside, as any other process (self_attach.c, x86-64). */
extern const struct fathom_capture_method fathom_capture_by_ptrace;
/* By changes that it makes to its own text (self_text.c). */
extern const struct fathom_capture_method fathom_capture_by_text;
/* By syscall user dispatch (self_dispatch.c, x86-64). */
extern const struct fathom_capture_method fathom_capture_by_dispatch;

/* Bits of the events that a capture method can record. */
enum fathom_captured {
	FATHOM_CAPTURED_FUNCTIONS = 1u << 0, /* alone */
	FATHOM_CAPTURED_SYSCALLS = 1u << 1,  /* alone */
	FATHOM_CAPTURED_BOTH = 1u << 2,
	FATHOM_CAPTURED_ALL = (1u << 3) - 1
};

struct fathom_capture_row {
	const struct fathom_capture_method *method;
	uint32_t word;     /* --method: enum fathom_syscall_method */
	uint32_t captured; /* enum fathom_captured */
};

/* The methods of this processor, in the order in which they are tried; NULL ends them. */
extern const struct fathom_capture_row fathom_capture_rows[];

/*
 * Returns the capture method by which a process with @options, or with NULL, is traced, if @word,
 * enum fathom_syscall_method, is asked for; 0: any. @before: the one that the system has refused;
 * NULL: none was, and there is always one. Returns NULL if no other is left.
 */
const struct fathom_capture_method *fathom_capture_method_choose(
	const struct fathom_trace_options *options, uint32_t word,
	const struct fathom_capture_method *before);

/* Called when the process calls exit(), which is to have @status: waits until all is reported. */
void fathom_self_trace_reader_exit(int status);

#endif
