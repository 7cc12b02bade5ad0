/* SPDX-License-Identifier: MIT */
/*
 * Stubs of system calls of the calling process (x86-64; src/trace/call_linked_x86_64.S), in pools
 * near the modules. A pool is written once, then executable, and never unmapped: a thread may be in
 * it.
 */
#ifndef FATHOM_INSIDE_CALL_POOL_H
#define FATHOM_INSIDE_CALL_POOL_H

#include "host/base/array.h"
#include "host/sites/kernel_calls.h"
#include "safe/base/error.h"

/* A call that is to get a stub. */
struct fathom_pool_call {
	uint64_t site;                          /* avma of the `syscall` */
	uint64_t stub;                          /* avma; 0: none within reach */
	struct fathom_kernel_call call;         /* as the file has it */
	uint8_t moved[FATHOM_KERNEL_MOVED_MAX]; /* the instructions before it */
};

struct fathom_pool_calls {
	FATHOM_ARRAY_OF(struct fathom_pool_call); /* of one module */
};

/* Makes the stubs of all @calls. FATHOM_E_OS; where there is no room, calls keep none. */
fathom_err fathom_call_pool_make(struct fathom_pool_calls *calls, struct fathom_errinfo *reterr);

#endif
