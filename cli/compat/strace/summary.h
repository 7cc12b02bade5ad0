/* SPDX-License-Identifier: MIT */
/* The summary of strace -c: calls, errors and time by system call. */
#ifndef FATHOM_CLI_COMPAT_STRACE_SUMMARY_H
#define FATHOM_CLI_COMPAT_STRACE_SUMMARY_H

#include "cli/compat/strace/command_line.h"

struct strace_summary;

/* Exits with status 1 if the order of -S, or a column of -U, is not known. */
struct strace_summary *strace_summary_create(const struct strace_options *o);
void strace_summary_take(struct strace_summary *s, const struct fathom_trace_event *e);
/* Prints it to @fd, and frees it; returns false if it cannot be written. */
bool strace_summary_finish(struct strace_summary *s, int fd);

#endif
