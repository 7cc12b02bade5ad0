/* SPDX-License-Identifier: MIT */
/* fathom trace --method=dispatch -- PROGRAM: the program traces its system calls itself. */
#ifndef FATHOM_CLI_TRACE_DISPATCHED_H
#define FATHOM_CLI_TRACE_DISPATCHED_H

#include "cli/trace_sink.h"

/* Becomes program @argv, with the tracer loaded into it; returns a status if that is impossible. */
int trace_run_dispatched(const struct trace_wants *wants, char **argv);

#endif
