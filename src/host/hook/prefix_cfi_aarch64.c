/* SPDX-License-Identifier: MIT */
#include "host/code/aarch64/arm_stub.h"
#include "host/hook/prefix_cfi.h"

/* Adds them to @arena, and forgets them. */
static void publish(struct fathom_jit_arena *arena, struct fathom_code_functions *f)
{
	const struct fathom_jit_changes changes = { .size = sizeof changes,
						    .add = f->items,
						    .n_add = f->n };

	if (f->n && arena)
		(void)fathom_jit_commit(arena, &changes, NULL);
	f->n = 0;
}

/* Stubs stay, and so does what is said of them. */
void fathom_prefix_cfi_publish(struct fathom_trampoline_cfi *rows,
			       struct fathom_hooked_site *const *sites, size_t n)
{
	struct fathom_jit_arena *arena = NULL;
	const uint64_t first = n ? sites[0]->stub.avma : 0;
	struct fathom_code_functions f = { 0 };
	struct fathom_jit_unwind rule;
	struct fathom_stub_cfi cfi;

	(void)rows;
	/* All stubs have the same. */
	fathom_stub_cfi_init(&cfi, &fathom_native_registers, fathom_native_registers.link, 1);
	fathom_arm_describe_hook_call(&cfi, FATHOM_HOOK_FRAME);
	rule = fathom_stub_cfi_end(&cfi, first, FATHOM_HOOK_CODE_SIZE);
	for (size_t i = 0; i < n; i++) {
		struct fathom_hooked_site *s = sites[i];

		if (s->is_published)
			continue;
		if (s->stub.arena != arena)
			publish(arena, &f);
		arena = s->stub.arena;
		s->is_published = fathom_code_functions_add(&f, s->stub.avma, FATHOM_HOOK_CODE_SIZE,
							    FATHOM_TRAMPOLINE_NAME, &rule);
	}
	publish(arena, &f);
	fathom_array_free(&f);
	fathom_stub_cfi_deinit(&cfi);
}

/* Stubs are published one by one: what they call moves nothing. */
void fathom_near_publish(struct fathom_near_pool *pool)
{
	const struct fathom_jit_unwind rule = { .size = sizeof rule, .kind = FATHOM_JIT_PUSHED };

	pool->arena =
		fathom_trampoline_pool_publish(&pool->code, 0, 2 * FATHOM_ARM_SIZE, &rule, false);
}
