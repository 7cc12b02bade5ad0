/* SPDX-License-Identifier: MIT */
/* Keeping the memory budget: drops decoded units that were not used lately. */
#ifndef FATHOM_MODULE_EVICT_H
#define FATHOM_MODULE_EVICT_H

#include "host/base/context.h"

struct fathom_debug;

/* Registers the units of @d with its session's eviction. Unregister them before closing @d. */
void fathom_evict_register(struct fathom *session, struct fathom_debug *d);
void fathom_evict_unregister(struct fathom *session, struct fathom_debug *d);

struct fathom_unit_data;

/* Frees @data, which no table holds any more, once its last reader is done. */
void fathom_evict_retire(struct fathom *session, struct fathom_unit_data *data);

/*
 * Drops units until the session is within its budget, first those that nobody used since the last
 * time. Does nothing while another thread evicts.
 */
void fathom_evict(struct fathom *session);

#endif
