/* SPDX-License-Identifier: MIT */
/* Frames of stacks of system calls, as lines for people and as JSON. */
#ifndef FATHOM_EVENTS_STACK_LINES_H
#define FATHOM_EVENTS_STACK_LINES_H

#include "host/events/writer.h"

/* Appends the line of @f, and one for each function that it is inlined into. */
void fathom_stack_lines_put(struct fathom_trace_writer *w, const struct fathom_trace_frame *f);

/*
 * Appends what differs from stack to stack: the members pc, sp, trust and signal_handler_called of
 * JSON.
 */
void fathom_stack_json_head(struct fathom_trace_writer *w, const struct fathom_trace_frame *f);
/* Appends the members of the answer, after a comma. */
void fathom_stack_json_names(struct fathom_trace_writer *w, const struct fathom_trace_frame *f);

#endif
