/* SPDX-License-Identifier: MIT */
/*
 * Stubs of system calls of the calling process (x86-64; src/trace/call_linked_x86_64.S), in pools
 * near the modules. A pool is written once, then executable, and never unmapped: a thread may be in
 * it.
 */
#ifndef FATHOM_INSIDE_CALL_POOL_H
#define FATHOM_INSIDE_CALL_POOL_H

#include "host/base/array.h"
#include "safe/base/error.h"

/* Bytes of instructions before a call that are moved into its stub, at the most. */
#define FATHOM_CALL_POOL_MOVED 37

/* A call that is to get a stub. */
struct fathom_pool_call {
	uint64_t site; /* avma of the `syscall` */
	uint64_t stub; /* avma; 0: none within reach */
	uint8_t moved_size;
	uint8_t moved[FATHOM_CALL_POOL_MOVED]; /* the instructions before it */
};

struct fathom_pool_calls {
	FATHOM_ARRAY_OF(struct fathom_pool_call); /* of one module */
};

/* Makes the stubs of all @calls. FATHOM_E_OS; where there is no room, calls keep none. */
fathom_err fathom_call_pool_make(struct fathom_pool_calls *calls, struct fathom_errinfo *reterr);

#endif
