/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "fathom/jit.h"
#include "host/hook/near_code.h"

const uint64_t fathom_near_reach = UINT64_C(1) << 31;

/* jmp *0(%rip), and the word behind it */
static const uint8_t jump_by_word[] = { 0xff, 0x25, 0, 0, 0, 0 };

size_t fathom_near_start(uint64_t dispatch, uint8_t to[FATHOM_NEAR_START])
{
	memcpy(to, jump_by_word, sizeof jump_by_word);
	memcpy(to + sizeof jump_by_word, &dispatch, sizeof dispatch);
	return sizeof jump_by_word + sizeof dispatch;
}

/* Stacks go through stubs as through the slots. */
void fathom_near_publish(struct fathom_near_pool *pool)
{
	const struct fathom_jit_unwind rule = { .size = sizeof rule,
						.kind = pool->is_behind_prologue
								? FATHOM_JIT_RESERVED
								: FATHOM_JIT_PUSHED };
	const struct fathom_jit_arena_options o = { .size = sizeof o, .unwind = &rule };
	const struct fathom_jit_function all = { .size = sizeof all,
						 .code = (const void *)(uintptr_t)pool->avma,
						 .code_size = FATHOM_NEAR_POOL_SIZE,
						 .name = FATHOM_HOOK_CODE_NAME };

	if (!fathom_jit_arena_create(all.code, FATHOM_NEAR_POOL_SIZE, &o, &pool->arena, NULL))
		(void)fathom_jit_add(pool->arena, &all, NULL);
}
