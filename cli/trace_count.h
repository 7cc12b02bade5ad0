/* SPDX-License-Identifier: MIT */
/* fathom trace -c: how often each function was called, and how long it took. */
#ifndef FATHOM_CLI_TRACE_COUNT_H
#define FATHOM_CLI_TRACE_COUNT_H

#include <fathom/fathom.h>

#include "cli/out.h"

struct trace_count;

/* Exits on failure. */
struct trace_count *trace_count_create(void);
void trace_count_destroy(struct trace_count *c);

void trace_count_event(struct trace_count *c, const struct fathom_trace_event *e);

/* Prints a line for each function, as text or JSON Lines, the most calls or time first. */
void trace_count_print(struct trace_count *c, struct out *o, bool json);

#endif
