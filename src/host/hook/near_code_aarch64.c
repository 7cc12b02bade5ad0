/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "host/hook/near_code.h"
#include "host/code/aarch64/instructions.h"

const uint64_t fathom_near_reach = FATHOM_ARM_REACH;

size_t fathom_near_start(uint64_t dispatch, uint8_t to[FATHOM_NEAR_START])
{
	uint32_t words[FATHOM_ARM_FAR_WORDS];

	fathom_arm_put_far_jump(dispatch, words);
	memcpy(to, words, sizeof words);
	return sizeof words;
}

/* Stubs are published one by one (prefix_rows_aarch64.c): what they call moves nothing. */
void fathom_near_publish(struct fathom_near_pool *pool)
{
	const struct fathom_jit_unwind rule = { .size = sizeof rule, .kind = FATHOM_JIT_PUSHED };

	pool->arena =
		fathom_trampoline_pool_publish(&pool->code, 0, 2 * FATHOM_ARM_SIZE, &rule, false);
}
