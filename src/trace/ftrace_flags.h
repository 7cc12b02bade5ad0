/* SPDX-License-Identifier: MIT */
/*
 * The flags by which a program that has the tracer inside is asked for a trace; main() does not see
 * them:
 *
 *	--ftrace, --ftrace=OPTIONS    trace this process: functions
 *	--strace, --strace=OPTIONS    its system calls; with both, one log has both
 *	----ftrace                    becomes --ftrace: for a program that this one runs; and so on,
 *	                              two dashes for each program between
 *	--                            nothing after it is looked at
 *
 * In a program that has more rights than its user all flags stay, and none is obeyed.
 *
 * All is done before the C library has begun, or while its dynamic linker has: nothing is called.
 */
#ifndef FATHOM_TRACE_FTRACE_FLAGS_H
#define FATHOM_TRACE_FTRACE_FLAGS_H

#include <stdbool.h>
#include <stddef.h>

/* How the process that reads what a program records calls itself (prctl(2), PR_SET_NAME). */
#define FATHOM_READER_NAME "fathom-trace"

struct fathom_trace_request {
	bool has_entered; /* by our entry point, which has taken the flags */
	bool wants_functions;
	bool wants_syscalls;
	const char *options; /* of the last one that has some; NULL: none */
};

/*
 * Takes the flags out of @argv, of @argc words and a NULL, which moves up; returns how many they
 * were.
 */
long fathom_trace_take_flags(long argc, char **argv, struct fathom_trace_request *ret);

/*
 * Takes them out of the stack of a new program, which is at @stack as the kernel has made it
 * (System V psABI, 3.4.1); returns where it begins now.
 */
long *fathom_trace_take_from_stack(long *stack);

/* The request to this process. */
extern struct fathom_trace_request fathom_trace_requested;

#endif
