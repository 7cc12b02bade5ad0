/* SPDX-License-Identifier: MIT */
#include "host/interpreters/script_text.h"

#include <string.h>

void fathom_script_text_put(struct fathom_script_text *t, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n && !t->bad; i++) {
		t->bad = t->n == FATHOM_SCRIPT_MAX_NAME;
		if (!t->bad)
			t->bytes[t->n++] = bytes[i] ? bytes[i] : '?';
	}
}

bool fathom_script_text_read(struct fathom_script_text *t, const struct fathom_runtime_found *f,
			     uint64_t avma, uint64_t n)
{
	char bytes[FATHOM_SCRIPT_MAX_NAME];

	if (n > sizeof bytes || !fathom_reader_read(f->memory, avma, bytes, (size_t)n))
		return false;
	fathom_script_text_put(t, bytes, (size_t)n);
	return !t->bad;
}

fathom_err fathom_script_text_copy(const struct fathom_script_text *t, struct fathom_arena *arena,
				   struct fathom_str *ret)
{
	char *to = fathom_arena_alloc(arena, t->n + 1);

	if (!to)
		return FATHOM_E_MEMORY;
	memcpy(to, t->bytes, t->n);
	to[t->n] = '\0';
	*ret = (struct fathom_str){ to, (uint32_t)t->n };
	return FATHOM_OK;
}
