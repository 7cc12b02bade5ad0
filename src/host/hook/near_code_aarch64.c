/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "fathom/jit.h"
#include "host/hook/near_code.h"
#include "host/rewrite/arm_branch.h"

const uint64_t fathom_near_reach = FATHOM_ARM_REACH;

/* ldr x16, .+8; br x16, and the word behind them */
static const uint32_t jump_by_word[] = { 0x58000050, 0xd61f0200 };

size_t fathom_near_start(uint64_t dispatch, uint8_t to[FATHOM_NEAR_START])
{
	memcpy(to, jump_by_word, sizeof jump_by_word);
	memcpy(to + sizeof jump_by_word, &dispatch, sizeof dispatch);
	return sizeof jump_by_word + sizeof dispatch;
}

/* Stubs are published one by one (prefix_rows_aarch64.c): what they call moves nothing. */
void fathom_near_publish(struct fathom_near_pool *pool)
{
	const struct fathom_jit_unwind rule = { .size = sizeof rule, .kind = FATHOM_JIT_PUSHED };
	const struct fathom_jit_arena_options o = { .size = sizeof o };
	const struct fathom_jit_function start = { .size = sizeof start,
						   .code = (const void *)(uintptr_t)pool->avma,
						   .code_size = sizeof jump_by_word,
						   .name = FATHOM_HOOK_CODE_NAME,
						   .unwind = &rule };

	if (!fathom_jit_arena_create(start.code, FATHOM_NEAR_POOL_SIZE, &o, &pool->arena, NULL))
		(void)fathom_jit_add(pool->arena, &start, NULL);
}
