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
struct fathom_self_trace_talk {
	/*
	 * The thread that is in fathom_trace_start() or fathom_trace_stop(): what it asks the
	 * kernel for is not the program's. 0: none is.
	 */
	_Atomic int32_t busy;
	_Atomic uint32_t wants_rest; /* 1: the process ends; report all that was recorded */
	int32_t status;              /* of the process, as waitpid(2) will have it */
	_Atomic uint32_t is_told;    /* 1: that is done; its children are still read */
};

/* A capture method: how a process is traced. */
struct fathom_capture_method {
	/*
	 * Where prepare, begin or read fail with FATHOM_E_OS, the next method is tried.
	 *
	 * Prepares the process, before its reader is made, which has a copy of what this leaves. On
	 * failure nothing is left, and nothing else is called.
	 */
	fathom_err (*prepare)(const struct fathom_trace_options *options,
			      struct fathom_errinfo *reterr);
	/*
	 * Called when @reader lives and waits: lets it trace the process. Frees this process's copy
	 * of what prepare() has made. @reader 0: no reader could be made; only frees.
	 */
	fathom_err (*begin)(pid_t reader, struct fathom_errinfo *reterr);
	/* Called when the process is traced; NULL: there is nothing to do then. */
	void (*begun)(void);
	/*
	 * In the reader, where the log is the only file that is open: reads what process @pid
	 * records, until it has ended or the options' control says so. Calls the options' ready
	 * once the process records.
	 */
	fathom_err (*read)(struct fathom *session, pid_t pid,
			   const struct fathom_trace_options *options,
			   struct fathom_self_trace_talk *talk, struct fathom_errinfo *reterr);
	/*
	 * Stops the process, which has a reader, from recording; after a begin() that failed, too.
	 * FATHOM_E_UNSUPPORTED: its text stays.
	 */
	fathom_err (*end)(struct fathom_errinfo *reterr);
	/* Frees what is left of the last time, if any; NULL: nothing ever is. */
	void (*forget)(void);
	/*
	 * Says whether what the calling thread calls is the tracer's own, and is not recorded;
	 * NULL: the reader knows by fathom_self_trace_talk.busy.
	 */
	void (*silence)(bool is_silent);
	/* fathom_trace_thread() of a thread of the process; never NULL */
	int (*change)(int change);
};

/* From outside, as any other process (self_ptrace.c, x86-64). */
extern const struct fathom_capture_method fathom_capture_by_ptrace;
/* By changes that it makes to its own text (self_rewrite.c). */
extern const struct fathom_capture_method fathom_capture_by_rewriting;
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

/*
 * The methods of this processor, in the order in which they are tried; NULL ends them. The first
 * one that records functions is also asked for fathom_trace_thread() where another process traces
 * this one: on x86-64 it has to be that by ptrace(2).
 */
extern const struct fathom_capture_row fathom_capture_rows[];

/*
 * Returns the capture method by which a process with @options, or with NULL, is traced, if @word,
 * enum fathom_syscall_method, is asked for; 0: any, and then there is one. @before NULL: the first
 * choice; else the next one after @before, which the system has refused. NULL: none is left, or the
 * method that @word asks for does not record this.
 */
const struct fathom_capture_method *fathom_capture_method_choose(
	const struct fathom_trace_options *options, uint32_t word,
	const struct fathom_capture_method *before);

/* Returns whether this processor has the method @word, enum fathom_syscall_method. */
bool fathom_capture_method_is_here(uint32_t word);

/* Called when the process calls exit(), which is to have @status: waits until all is reported. */
void fathom_self_trace_reader_exit(int status);

#endif
