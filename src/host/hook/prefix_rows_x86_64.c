/* SPDX-License-Identifier: MIT */
#include "host/hook/prefix_rows.h"

#include "host/hook/near_code.h"

/* Functions that are published together. */
struct functions {
	FATHOM_ARRAY_OF(struct fathom_jit_function);
};

static const struct fathom_jit_unwind rule = { .size = sizeof rule, .kind = FATHOM_JIT_PUSHED };

static const char *start_of(const struct functions *f, size_t i)
{
	return f->items[i].code;
}

/* Publishes @f in an arena of their own, and forgets them. */
static void publish(struct fathom_prefix_rows *rows, struct functions *f)
{
	const struct fathom_jit_arena_options o = { .size = sizeof o };
	const struct fathom_jit_changes changes = { .size = sizeof changes,
						    .add = f->items,
						    .n_add = f->n };
	struct fathom_jit_arena *arena;

	if (f->n && fathom_array_room(rows, 1) &&
	    !fathom_jit_arena_create(start_of(f, 0),
				     (size_t)(start_of(f, f->n - 1) - start_of(f, 0)) +
					     FATHOM_HOOK_JUMP_SIZE,
				     &o, &arena, NULL)) {
		(void)fathom_array_push(rows, arena);
		(void)fathom_jit_commit(arena, &changes, NULL);
	}
	f->n = 0;
}

void fathom_prefix_rows_publish(struct fathom_prefix_rows *rows,
				struct fathom_hooked_site *const *sites, size_t n)
{
	struct functions f = { 0 };

	for (size_t i = 0; i < n; i++) {
		const struct fathom_jit_function function = {
			.size = sizeof function,
			.code = (const void *)(uintptr_t)sites[i]->prefix,
			.code_size = FATHOM_HOOK_JUMP_SIZE,
			.name = FATHOM_HOOK_CODE_NAME,
			.unwind = &rule,
		};

		if (!sites[i]->prefix)
			continue;
		/* No pool, which has a rule of its own, fits into an arena without one. */
		if (f.n && (uintptr_t)function.code - (uintptr_t)start_of(&f, f.n - 1) >=
				   FATHOM_NEAR_POOL_SIZE)
			publish(rows, &f);
		if (!fathom_array_push(&f, function))
			break;
	}
	publish(rows, &f);
	fathom_array_free(&f);
}

void fathom_prefix_rows_withdraw(struct fathom_prefix_rows *rows)
{
	for (size_t i = 0; i < rows->n; i++)
		fathom_jit_arena_destroy(rows->items[i]);
	fathom_array_free(rows);
}
