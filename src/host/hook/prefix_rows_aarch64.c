/* SPDX-License-Identifier: MIT */
#include "host/hook/prefix_rows.h"

#include "host/hook/near_code.h"

/* DWARF numbers of registers. */
enum { X16 = 16, X30 = 30 };

/* Bytes of a stub that are code, and of its frame. */
enum { CODE_SIZE = 16, FRAME = 16 };

/* Effects of a stub on the stack (hooked_site.h). */
static const struct fathom_jit_event events[] = {
	{ .offset = 4, .kind = FATHOM_JIT_SUB, .value = FRAME },
	{ .offset = 4, .kind = FATHOM_JIT_SAVE, .reg = X16, .value = 0 },
	{ .offset = 4, .kind = FATHOM_JIT_SAVE, .reg = X30, .value = 8 },
	{ .offset = 12, .kind = FATHOM_JIT_RESTORE, .reg = X16 },
	{ .offset = 12, .kind = FATHOM_JIT_RESTORE, .reg = X30 },
	{ .offset = 12, .kind = FATHOM_JIT_ADD, .value = FRAME },
};

static const struct fathom_jit_unwind rule = { .size = sizeof rule,
					       .kind = FATHOM_JIT_EVENTS,
					       .events = events,
					       .n_events = sizeof events / sizeof *events };

/* Functions that are published together. */
struct functions {
	FATHOM_ARRAY_OF(struct fathom_jit_function);
};

/* Adds them to @arena, and forgets them. */
static void publish(struct fathom_jit_arena *arena, struct functions *f)
{
	const struct fathom_jit_changes changes = { .size = sizeof changes,
						    .add = f->items,
						    .n_add = f->n };

	if (f->n && arena)
		(void)fathom_jit_commit(arena, &changes, NULL);
	f->n = 0;
}

/* Stubs stay, and so does what is said of them. */
void fathom_prefix_rows_publish(struct fathom_code_rows *rows,
				struct fathom_hooked_site *const *sites, size_t n)
{
	struct fathom_jit_arena *arena = NULL;
	struct functions f = { 0 };

	(void)rows;
	for (size_t i = 0; i < n; i++) {
		struct fathom_hooked_site *s = sites[i];
		const struct fathom_jit_function function = {
			.size = sizeof function,
			.code = (const void *)(uintptr_t)s->stub.avma,
			.code_size = CODE_SIZE,
			.name = FATHOM_TRAMPOLINE_NAME,
			.unwind = &rule,
		};

		if (s->is_published)
			continue;
		if (s->stub.arena != arena)
			publish(arena, &f);
		arena = s->stub.arena;
		s->is_published = fathom_array_push(&f, function);
	}
	publish(arena, &f);
	fathom_array_free(&f);
}
