/* SPDX-License-Identifier: MIT */
#include "host/hook/prefix_rows.h"

#include "host/hook/near_code.h"

void fathom_prefix_rows_publish(struct fathom_code_rows *rows,
				struct fathom_hooked_site *const *sites, size_t n)
{
	static const struct fathom_jit_unwind rule = { .size = sizeof rule,
						       .kind = FATHOM_JIT_PUSHED };
	struct {
		FATHOM_ARRAY_OF(struct fathom_jit_function);
	} f = { 0 };

	for (size_t i = 0; i < n; i++) {
		const struct fathom_jit_function function = {
			.size = sizeof function,
			.code = (const void *)(uintptr_t)sites[i]->prefix,
			.code_size = FATHOM_HOOK_JUMP_SIZE,
			.name = FATHOM_TRAMPOLINE_NAME,
			.unwind = &rule,
		};

		if (sites[i]->prefix && !fathom_array_push(&f, function))
			break;
	}
	/* No pool, which has a rule of its own, fits into an arena without one. */
	fathom_code_rows_publish(rows, f.items, f.n, FATHOM_NEAR_POOL_SIZE);
	fathom_array_free(&f);
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
