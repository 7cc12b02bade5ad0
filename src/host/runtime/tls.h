/* SPDX-License-Identifier: MIT */
/* The threads' copies of TLS symbols. */
#ifndef FATHOM_RUNTIME_TLS_H
#define FATHOM_RUNTIME_TLS_H

#include "host/runtime/runtime.h"

/*
 * Finds how many bytes the TLS block of @image has, and the same rounded up to its alignment.
 * False: it has none, or a size that no program has.
 */
bool fathom_tls_block(const struct fathom_image *image, uint64_t *ret_size, uint64_t *ret_rounded);

/*
 * Calls @fn with thread number and avma for each thread's copy of the object @off bytes into the
 * TLS block of module @module, until it returns false. FATHOM_E_UNSUPPORTED: the copies cannot be
 * located; FATHOM_E_MEMORY.
 */
fathom_err fathom_tls_walk(struct fathom_runtime *r, uint32_t module, uint64_t off,
			   bool (*fn)(int32_t tid, uint64_t avma, void *data), void *data);

#endif
