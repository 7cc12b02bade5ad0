/* SPDX-License-Identifier: MIT */
/*
 * Lines as strace(1) prints them: calls begin, may be left unfinished for others, and are resumed.
 */
#ifndef FATHOM_CLI_COMPAT_STRACE_CALL_LINES_H
#define FATHOM_CLI_COMPAT_STRACE_CALL_LINES_H

#include "cli/compat/strace/command_line.h"

struct strace_lines;

struct strace_lines *strace_lines_create(const struct strace_options *o);

/* Prints what @e tells; returns false if it cannot be written. */
bool strace_lines_take(struct strace_lines *l, const struct fathom_trace_event *e);
/* Writes what was collected. */
bool strace_lines_flush(struct strace_lines *l);
/* Ends the line that is unfinished, and frees it. */
bool strace_lines_finish(struct strace_lines *l);

#endif
