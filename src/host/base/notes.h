/* SPDX-License-Identifier: MIT */
/* Notes of a target: an append-only list, read without a lock. */
#ifndef FATHOM_BASE_NOTES_H
#define FATHOM_BASE_NOTES_H

#include <stdatomic.h>

#include "safe/base/error.h"

/* Most different notes; more than anybody reads. The rest is dropped. */
#define FATHOM_MAX_NOTES 64

struct fathom_notes {
	_Atomic(struct fathom_errinfo *) note[FATHOM_MAX_NOTES];
	_Atomic uint32_t n_muted; /* callers that want no notes now */
};

/* Adds a copy of @info unless an equal note is there. */
void fathom_notes_add(struct fathom_notes *n, const struct fathom_errinfo *info);
/* From mute to unmute nothing is added: files are tried whose failures nobody asked about. */
void fathom_notes_mute(struct fathom_notes *n);
void fathom_notes_unmute(struct fathom_notes *n);
void fathom_notes_deinit(struct fathom_notes *n);

#endif
