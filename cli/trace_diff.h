/* SPDX-License-Identifier: MIT */
/* fathom trace --diff A B: where the calls of two runs part. */
#ifndef FATHOM_CLI_TRACE_DIFF_H
#define FATHOM_CLI_TRACE_DIFF_H

#include "cli/trace_sink.h"

/*
 * Compares the trace files @a and @b, thread by thread in the order in which they began; returns
 * the exit status: 0 the calls are the same, 1 they part, 2 a file cannot be read.
 */
int trace_diff(struct common *c, struct trace_wants *wants, const char *a, const char *b);

#endif
