/* SPDX-License-Identifier: MIT */
#include "host/base/notes.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool same_note(const struct fathom_errinfo *a, const struct fathom_errinfo *b)
{
	return a->err == b->err && a->offset == b->offset && a->what == b->what &&
	       strcmp(a->section, b->section) == 0 && strcmp(a->file, b->file) == 0;
}

void fathom_notes_add(struct fathom_notes *n, const struct fathom_errinfo *info)
{
	struct fathom_errinfo *copy = atomic_load(&n->n_muted) ? NULL : malloc(sizeof *copy);

	if (!copy)
		return; /* a note is dispensable: the answer has its reason */
	*copy = *info;
	for (size_t i = 0; i < FATHOM_MAX_NOTES; i++) {
		struct fathom_errinfo *present = NULL;

		if (atomic_compare_exchange_strong(&n->note[i], &present, copy))
			return;
		if (same_note(present, info))
			break;
	}
	free(copy);
}

void fathom_notes_mute(struct fathom_notes *n)
{
	(void)atomic_fetch_add(&n->n_muted, 1);
}

void fathom_notes_unmute(struct fathom_notes *n)
{
	(void)atomic_fetch_sub(&n->n_muted, 1);
}

void fathom_notes_deinit(struct fathom_notes *n)
{
	for (size_t i = 0; i < FATHOM_MAX_NOTES; i++)
		free(atomic_load(&n->note[i]));
}
