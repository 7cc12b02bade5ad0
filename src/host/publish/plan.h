/* SPDX-License-Identifier: MIT */
/* Plan of the index of all functions after a commit. */
#ifndef FATHOM_PUBLISH_PLAN_H
#define FATHOM_PUBLISH_PLAN_H

#include "host/publish/publish.h"

/* A function that comes, or one that goes (its `leaves` is set). */
struct fathom_jit_change {
	struct fathom_jit_entry *entry;
	size_t number; /* in the caller's array, for errors */
};

struct fathom_jit_change_array {
	FATHOM_ARRAY_OF(struct fathom_jit_change);
};

struct fathom_jit_plan {
	struct fathom_jit_leaves leaves; /* all, in order */
	struct fathom_jit_leaves gone;   /* those of the index that are replaced */
	struct fathom_jit_entries work;  /* the functions of one leaf and its changes */
	size_t capacity;
	uint64_t commit;  /* its number: leaves with it are new */
	bool last_is_new; /* of `leaves`, as they are made */
	size_t bad;       /* number of the change that failed */
};

/* Returns the function at @low, or NULL. */
struct fathom_jit_entry *fathom_jit_find(const struct fathom_jit_registry *r, uint64_t low);

/*
 * Returns where the next function after @e begins, or the end of @e's arena if that comes first.
 */
uint64_t fathom_jit_next(const struct fathom_jit_registry *r, const struct fathom_jit_entry *e);

/*
 * Sorts @changes and makes the leaves that they lead to, without consumers' images. The index stays
 * as it is. FATHOM_E_ARGUMENT if functions overlap; FATHOM_E_MEMORY.
 */
fathom_err fathom_jit_plan_make(struct fathom_jit_registry *r,
				struct fathom_jit_change_array *changes,
				struct fathom_jit_plan *ret);

/* Frees @p with the leaves that it has made: it is given up. */
void fathom_jit_plan_cancel(struct fathom_jit_registry *r, struct fathom_jit_plan *p);

/*
 * Makes the leaves of @p the index, and frees those that it replaces. Their images are withdrawn.
 */
void fathom_jit_plan_apply(struct fathom_jit_registry *r, struct fathom_jit_plan *p);

#endif
