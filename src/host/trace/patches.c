/* SPDX-License-Identifier: MIT */
#include "host/trace/patches.h"

#include <stdlib.h>
#include <string.h>

#include "host/base/page.h"

struct fathom_patches *fathom_patches_create(void)
{
	struct fathom_patches *patches = calloc(1, sizeof *patches);

	if (patches)
		patches->references = 1;
	return patches;
}

void fathom_patches_acquire(struct fathom_patches *patches)
{
	if (patches)
		patches->references++;
}

void fathom_patches_release(struct fathom_patches *patches)
{
	if (!patches || --patches->references)
		return;
	fathom_array_free(patches);
	free(patches);
}

/* Adds what differs of @n bytes at @avma, up to FATHOM_PATCH_BYTES. */
static bool add_patch(struct fathom_patches *patches, uint64_t avma, const uint8_t *bytes,
		      const uint8_t *was, size_t n)
{
	struct fathom_patch patch = { .avma = avma };
	size_t first = 0;

	while (first < n && bytes[first] == was[first])
		first++;
	while (n > first && bytes[n - 1] == was[n - 1])
		n--;
	if (first == n)
		return true;
	patch.avma += first;
	patch.size = (uint8_t)(n - first);
	memcpy(patch.bytes, was + first, n - first);
	return fathom_array_push(patches, patch);
}

bool fathom_text_put_back(struct fathom_text_window *w)
{
	const uint64_t size = w->size;

	w->size = 0;
	/* A page that is written is the process's own from then on. */
	if (!memcmp(w->bytes, w->was, size))
		return true;
	for (uint64_t i = 0; w->patches && i < size; i += FATHOM_PATCH_BYTES)
		if (!add_patch(w->patches, w->avma + i, w->bytes + i, w->was + i,
			       FATHOM_PATCH_BYTES))
			return false;
	return !size || fathom_tracee_write(w->tracee, w->avma, w->bytes, size);
}

uint8_t *fathom_text_at(struct fathom_text_window *w, uint64_t low, uint64_t high)
{
	const uint64_t page = fathom_page_size();

	/* The next page belongs to the same piece, one that holds nothing to change does not. */
	if (w->size && low >= w->avma && high <= w->avma + w->size)
		return w->bytes + (low - w->avma);
	if (!fathom_text_put_back(w) || high - low > FATHOM_TEXT_WINDOW / 2)
		return NULL;
	w->avma = low & ~(page - 1);
	w->size = ((high + page - 1) & ~(page - 1)) - w->avma;
	if (!fathom_tracee_read(w->tracee, w->avma, w->bytes, w->size)) {
		w->size = 0;
		return NULL;
	}
	memcpy(w->was, w->bytes, w->size);
	return w->bytes + (low - w->avma);
}

bool fathom_patches_undo(const struct fathom_patches *patches, const struct fathom_tracee *tracee)
{
	struct fathom_text_window *w = calloc(1, sizeof *w);
	bool is_done = w != NULL;

	if (w)
		w->tracee = tracee;
	for (size_t i = 0; w && i < patches->n; i++) {
		const struct fathom_patch *patch = &patches->items[i];
		uint8_t *bytes = fathom_text_at(w, patch->avma, patch->avma + patch->size);

		if (bytes)
			memcpy(bytes, patch->bytes, patch->size);
		else
			is_done = false;
	}
	if (w && !fathom_text_put_back(w))
		is_done = false;
	free(w);
	return is_done;
}
