/* SPDX-License-Identifier: MIT */
/*
 * fathom trace -- PROGRAM: runs a program and logs what it calls; -p: one that runs; --read: tells
 * of a file.
 */
#ifndef FATHOM_CLI_TRACE_RUN_H
#define FATHOM_CLI_TRACE_RUN_H

#include "cli/trace_sink.h"

/* Runs program @argv and returns the exit status, or ends as the program has. */
int trace_run(struct common *c, struct trace_wants *wants, char **argv);

/* Attaches to the processes @pids, of which it frees the numbers; returns the exit status. */
int trace_attach(struct common *c, struct trace_wants *wants, int32_t *pids, size_t n);

/* Reports the events of the trace file @path; returns the exit status. */
int trace_read(struct common *c, struct trace_wants *wants, const char *path);

#endif
