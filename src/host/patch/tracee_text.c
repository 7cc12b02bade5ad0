/* SPDX-License-Identifier: MIT */
#include "host/patch/tracee_text.h"

#include <string.h>

#include "host/base/page.h"

bool fathom_tracee_text_flush(struct fathom_tracee_text *t)
{
	const uint64_t size = t->size;
	const bool is_changed = t->is_changed;

	t->size = 0;
	t->is_changed = false;
	/* A page that is written is the process's own from then on. */
	return !is_changed || fathom_tracee_write(t->tracee, t->avma, t->bytes, size);
}

/*
 * Returns the @size bytes at @avma, from another piece if they are not in this one; NULL: they
 * cannot be read, or what was changed before not be written.
 */
static uint8_t *bytes_at(struct fathom_tracee_text *t, uint64_t avma, size_t size)
{
	const uint64_t page = fathom_page_size();

	if (t->size && avma >= t->avma && avma + size <= t->avma + t->size)
		return t->bytes + (avma - t->avma);
	if (!fathom_tracee_text_flush(t) || size > FATHOM_TEXT_WINDOW / 2)
		return NULL;
	t->avma = avma & ~(page - 1);
	t->size = ((avma + size + page - 1) & ~(page - 1)) - t->avma;
	if (!fathom_tracee_read(t->tracee, t->avma, t->bytes, t->size)) {
		t->size = 0;
		return NULL;
	}
	return t->bytes + (avma - t->avma);
}

static bool read_text(struct fathom_text_memory *m, uint64_t avma, void *to, size_t size)
{
	struct fathom_tracee_text *t = (struct fathom_tracee_text *)m;
	const uint8_t *bytes;

	if (t->runs)
		return fathom_tracee_read(t->tracee, avma, to, size);
	bytes = bytes_at(t, avma, size);
	if (bytes)
		memcpy(to, bytes, size);
	return bytes != NULL;
}

static bool write_text(struct fathom_text_memory *m, uint64_t avma, const void *from, size_t size)
{
	struct fathom_tracee_text *t = (struct fathom_tracee_text *)m;
	uint8_t *bytes;

	if (t->runs)
		return fathom_tracee_write(t->tracee, avma, from, size);
	bytes = bytes_at(t, avma, size);
	if (!bytes)
		return false;
	memcpy(bytes, from, size);
	t->is_changed = true;
	return true;
}

void fathom_tracee_text_init(struct fathom_tracee_text *t, const struct fathom_tracee *tracee)
{
	t->memory = (struct fathom_text_memory){ .read = read_text, .write = write_text };
	t->tracee = tracee;
	t->size = 0;
	t->is_changed = t->runs = false;
}
