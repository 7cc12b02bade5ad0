/* SPDX-License-Identifier: MIT */
#include "host/hook/prefix_cfi.h"

#include "host/hook/near_pool.h"

void fathom_prefix_cfi_publish(struct fathom_trampoline_cfi *rows,
			       struct fathom_hooked_site *const *sites, size_t n)
{
	static const struct fathom_jit_unwind rule = { .size = sizeof rule,
						       .kind = FATHOM_JIT_PUSHED };
	struct fathom_code_functions f = { 0 };

	for (size_t i = 0; i < n; i++)
		if (sites[i]->prefix &&
		    !fathom_code_functions_add(&f, sites[i]->prefix, FATHOM_HOOK_JUMP_SIZE,
					       FATHOM_TRAMPOLINE_NAME, &rule))
			break;
	/* No pool, which has a rule of its own, fits into an arena without one. */
	fathom_trampoline_cfi_publish(rows, &f, FATHOM_NEAR_POOL_SIZE, FATHOM_JIT_WITHIN_FILE);
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
