/* SPDX-License-Identifier: MIT */
/*
 * Memory for stubs, near the modules whose slots jump there: pools that are executable, and never
 * writable. Unwinders are told of them by JIT publication.
 */
#ifndef FATHOM_HOOK_NEAR_POOL_H
#define FATHOM_HOOK_NEAR_POOL_H

#include "fathom/trace.h"
#include "host/base/array.h"
#include "host/trampoline/trampoline.h"

/* Bytes of a pool. */
#define FATHOM_NEAR_POOL_SIZE (UINT64_C(1) << 18)

struct fathom_near_pool {
	struct fathom_trampoline_pool code;
	struct fathom_jit_arena *arena; /* by which unwinders are told of it; NULL: they are not */
	bool is_behind_prologue;
};

/* All zero, there are none. They are never freed. */
struct fathom_near_pools {
	FATHOM_ARRAY_OF(struct fathom_near_pool);
};

/* A stub, and what it calls: the beginning of its pool, a jump to the dispatcher. */
struct fathom_near_stub {
	uint64_t avma; /* 0: there is no room */
	uint64_t dispatch;
	struct fathom_jit_arena *arena; /* of its pool */
};

/* Returns a stub within reach of @site in *@ret. FATHOM_E_MEMORY; FATHOM_E_OS. */
fathom_err fathom_near_stub(struct fathom_near_pools *code, const struct fathom_site *site,
			    struct fathom_near_stub *ret);

/* Tells unwinders how stacks go through @pool (prefix_cfi_x86_64.c and so on). */
void fathom_near_publish(struct fathom_near_pool *pool);

#endif
