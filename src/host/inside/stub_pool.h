/* SPDX-License-Identifier: MIT */
/*
 * Stubs by which sites of the calling process call the hook (aarch64; src/trace/linked.h), in pools
 * near the modules; and those of system calls (src/trace/call_linked.h). A pool is written once,
 * then executable, and never unmapped: a thread may be in it. A site has the same stub each time
 * that the process is traced with the same hook.
 *
 *	pool	 ldr x16, .+8; br x16; address of the hook; of system calls twice
 *	stubs	 4 instructions each, of system calls 8
 */
#ifndef FATHOM_INSIDE_STUB_POOL_H
#define FATHOM_INSIDE_STUB_POOL_H

#include "fathom/trace.h"
#include "host/base/array.h"
#include "host/code/aarch64/stub.h"
#include "host/trampoline/pool.h"
#include "safe/base/error.h"

/* From the beginning of a stub to where its call of the hook returns to. */
#define FATHOM_STUB_BACK FATHOM_ARM_HOOK_CALL_BACK

/* A site that has a stub, or is to get one. */
struct fathom_stub_site {
	uint64_t site;   /* avma of the instruction that leads to the stub */
	uint64_t behind; /* avma at which the function goes on */
	uint64_t stub;   /* avma; 0: none within reach */
};

/* A pool, or the sites of one to come; sorted by address. */
struct fathom_stub_pool {
	uint64_t hook;   /* avma */
	uint64_t behind; /* avma of the hook behind a system call; 0: the sites are no such calls */
	struct fathom_trampoline_pool code;
	FATHOM_ARRAY_OF(struct fathom_stub_site);
};

/* All zero, there are none. */
struct fathom_stub_pools {
	FATHOM_ARRAY_OF(struct fathom_stub_pool);
};

/*
 * Finds the stubs of all sites in @module, sorted, for its hook, or makes them, in a pool within
 * reach. FATHOM_E_MEMORY, FATHOM_E_OS.
 */
fathom_err fathom_stub_pools_get(struct fathom_stub_pools *pools, struct fathom_stub_pool *module,
				 struct fathom_errinfo *reterr);

#endif
