/* SPDX-License-Identifier: MIT */
#include "host/code/x86_64/instructions.h"
#include "host/hook/near_code.h"

const uint64_t fathom_near_reach = FATHOM_X86_REACH;

size_t fathom_near_start(uint64_t dispatch, uint8_t to[FATHOM_NEAR_START])
{
	fathom_x86_put_far_jump(dispatch, to);
	return FATHOM_X86_FAR_SIZE;
}

/* Stacks go through stubs as through the slots. */
void fathom_near_publish(struct fathom_near_pool *pool)
{
	const struct fathom_jit_unwind rule = { .size = sizeof rule,
						.kind = pool->is_behind_prologue
								? FATHOM_JIT_RESERVED
								: FATHOM_JIT_PUSHED };

	pool->arena =
		fathom_trampoline_pool_publish(&pool->code, 0, FATHOM_NEAR_POOL_SIZE, &rule, true);
}
