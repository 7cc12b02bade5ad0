/* SPDX-License-Identifier: MIT */
/*
 * The events of a trace as text, one line for each:
 *
 *	#     tid   nanoseconds   stack symbol
 *	FUN 18900        95'034      96   &puts
 *	FUN 18900        97'002      16     &step ×10'000
 *
 * Digits are grouped by three; each call is indented by two columns for each call that it is
 * within, up to a limit. Also as JSON Lines.
 */
#ifndef FATHOM_CLI_TRACE_TEXT_H
#define FATHOM_CLI_TRACE_TEXT_H

#include <fathom/fathom.h>

#include "cli/out.h"

/* Appends the line that names the columns. */
void trace_text_head(struct out *o);
void trace_text_event(struct out *o, const struct fathom_trace_event *e);
void trace_json_event(struct out *o, const struct fathom_trace_event *e);

/* Appends the digits of @value with a mark between each three. */
void trace_text_grouped(struct out *o, uint64_t value, size_t width);

#endif
