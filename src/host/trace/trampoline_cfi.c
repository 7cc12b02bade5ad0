/* SPDX-License-Identifier: MIT */
#include "host/trace/trampoline_cfi.h"

bool fathom_code_functions_add(struct fathom_code_functions *f, uint64_t avma, uint64_t size,
			       const char *name, const struct fathom_jit_unwind *rule)
{
	const struct fathom_jit_function function = { .size = sizeof function,
						      .code = (const void *)(uintptr_t)avma,
						      .code_size = (size_t)size,
						      .name = name,
						      .unwind = rule };

	return fathom_array_push(f, function);
}

static uint64_t start_of(const struct fathom_jit_function *f)
{
	return (uintptr_t)f->code;
}

/* Publishes @n functions in an arena of their own. */
static void publish(struct fathom_trampoline_cfi *rows, const struct fathom_jit_function *f,
		    size_t n, uint32_t flags)
{
	const struct fathom_jit_arena_options o = { .size = sizeof o, .flags = flags };
	const struct fathom_jit_changes changes = { .size = sizeof changes, .add = f, .n_add = n };
	const uint64_t size = start_of(&f[n - 1]) + f[n - 1].code_size - start_of(f);
	struct fathom_jit_arena *arena;

	if (!fathom_array_room(rows, 1) ||
	    fathom_jit_arena_create(f[0].code, (size_t)size, &o, &arena, NULL))
		return;
	(void)fathom_array_push(rows, arena);
	(void)fathom_jit_commit(arena, &changes, NULL);
}

void fathom_trampoline_cfi_publish(struct fathom_trampoline_cfi *rows,
				   const struct fathom_code_functions *f, uint64_t far,
				   uint32_t flags)
{
	size_t first = 0;

	for (size_t i = 1; i <= f->n; i++) {
		if (i < f->n && start_of(&f->items[i]) - start_of(&f->items[i - 1]) < far)
			continue;
		publish(rows, f->items + first, i - first, flags);
		first = i;
	}
}

void fathom_trampoline_cfi_withdraw(struct fathom_trampoline_cfi *rows)
{
	for (size_t i = 0; i < rows->n; i++)
		fathom_jit_arena_destroy(rows->items[i]);
	fathom_array_free(rows);
}
