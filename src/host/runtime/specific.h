/* SPDX-License-Identifier: MIT */
/* Thread-specific data of glibc: what pthread_getspecific() returns in each thread. */
#ifndef FATHOM_RUNTIME_SPECIFIC_H
#define FATHOM_RUNTIME_SPECIFIC_H

#include "host/runtime/runtime.h"

/*
 * Finds the value of @key in thread @tid; 0: it has none. FATHOM_E_NOT_FOUND: there is no such
 * thread, or its memory is not; FATHOM_E_UNSUPPORTED: glibc does not describe it; FATHOM_E_MEMORY.
 */
fathom_err fathom_specific_read(struct fathom_runtime *r, uint32_t key, int32_t tid, uint64_t *ret);

#endif
