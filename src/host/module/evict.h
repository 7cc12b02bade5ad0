/* SPDX-License-Identifier: MIT */
/*
 * Keeping the byte budget: dropping what was decoded of units that were not asked about lately.
 */
#ifndef FATHOM_MODULE_EVICT_H
#define FATHOM_MODULE_EVICT_H

#include "host/base/context.h"

struct fathom_debug;

/* Makes the units of @d known to the eviction of its session; before it is closed, unknown again.
 */
void fathom_evict_register(struct fathom *session, struct fathom_debug *d);
void fathom_evict_unregister(struct fathom *session, struct fathom_debug *d);

struct fathom_unit_data;

/* Frees @data, which no table holds any more, once nobody reads it. */
void fathom_evict_retire(struct fathom *session, struct fathom_unit_data *data);

/*
 * When the session is over its budget, drops units until it is not, first those that nobody used
 * since the last time. Does nothing while another thread is at it.
 */
void fathom_evict(struct fathom *session);

#endif
