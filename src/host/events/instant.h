/* SPDX-License-Identifier: MIT */
/* Names events that are neither calls nor returns: each is one moment in a viewer of traces. */
#ifndef FATHOM_EVENTS_INSTANT_H
#define FATHOM_EVENTS_INSTANT_H

#include "fathom/trace.h"
#include "host/base/array.h"

/* Returns whether @e is such an event. */
static inline bool fathom_instant_is(const struct fathom_trace_event *e)
{
	return e->type != FATHOM_TRACE_CALL && e->type != FATHOM_TRACE_RETURN &&
	       e->type != FATHOM_TRACE_CALLER;
}

/*
 * Makes @name the name of @e, such as "signal SIGUSR1" or "lost 12 events", ended by a NUL. Returns
 * false without memory.
 */
bool fathom_instant_name(const struct fathom_trace_event *e, struct fathom_bytes_array *name);

#endif
