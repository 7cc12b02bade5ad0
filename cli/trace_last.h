/* SPDX-License-Identifier: MIT */
/* fathom trace --last N: the last events of a trace. */
#ifndef FATHOM_CLI_TRACE_LAST_H
#define FATHOM_CLI_TRACE_LAST_H

#include <fathom/fathom.h>

struct trace_last;

/* Keeps @n events. Exits on failure. */
struct trace_last *trace_last_create(uint32_t n);
void trace_last_destroy(struct trace_last *l);

/* Keeps @e, and forgets the oldest event if there are too many. */
void trace_last_add(struct trace_last *l, const struct fathom_trace_event *e);
/* Passes what is kept to @take, oldest first, and forgets it. */
void trace_last_give(struct trace_last *l,
		     void (*take)(void *data, const struct fathom_trace_event *e), void *data);

#endif
