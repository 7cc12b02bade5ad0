/* SPDX-License-Identifier: MIT */
/*
 * Trees of a report. Leaves are the stacks of samples, each distinct one with its weight; a tree
 * joins what stacks have in common, from the outermost frame or from another one.
 */
#ifndef FATHOM_PROFILE_REPORT_TREE_H
#define FATHOM_PROFILE_REPORT_TREE_H

#include "host/base/progress.h"
#include "host/profile/report_leaves.h"

struct fathom_report_branch {
	uint32_t parent; /* it has a lower number; branch 0 is the root */
	uint32_t row;
	uint64_t self; /* weights, and the samples that have them */
	uint64_t self_samples;
	uint64_t total;
	uint64_t total_samples;
};

/* All zero but rows, it is empty. */
struct fathom_report_tree {
	FATHOM_ARRAY_OF(struct fathom_report_branch);
	const struct fathom_report_rows *rows;
	struct fathom_pace pace;
	uint64_t steps;
	const char *too_much; /* the limit that was met; NULL: none */
	enum fathom_cause cause;
	bool is_cancelled;
	bool no_memory;
};

/* Siblings of a tree; 0: none. */
struct fathom_report_links {
	uint32_t *first;
	uint32_t *next;
};

/*
 * Makes the tree of what calls what, of the @n @leaves, which it sorts. With @with_of, it begins at
 * the functions of the option of. FATHOM_E_LIMIT, FATHOM_E_CANCELLED, FATHOM_E_MEMORY.
 */
fathom_err fathom_report_tree_down(struct fathom_report_tree *t, struct fathom_report_leaf *leaves,
				   size_t n, bool with_of, struct fathom_errinfo *reterr);

/*
 * Makes the tree of what was called by what: from the innermost frames or, with @from_of, from the
 * functions of the option of. Branches of less than @least are not followed. Errors are the same.
 */
fathom_err fathom_report_tree_up(struct fathom_report_tree *t,
				 const struct fathom_report_leaf *leaves, size_t n, bool from_of,
				 uint64_t least, struct fathom_errinfo *reterr);

void fathom_report_tree_deinit(struct fathom_report_tree *t);

/* For report_up.c and report_tree.c. */

/* Appends a branch without weight; returns its number, 0 if there is no room. */
uint32_t fathom_report_tree_add(struct fathom_report_tree *t, uint32_t parent, uint32_t row);
/* Counts a step; returns false when the tree is to be given up. */
bool fathom_report_tree_step(struct fathom_report_tree *t);
/* Returns the error of a tree that was made, with details in @reterr. */
fathom_err fathom_report_tree_end(struct fathom_report_tree *t, struct fathom_errinfo *reterr);

/* Links the branches of @t to their siblings in the order of their numbers. FATHOM_E_MEMORY. */
fathom_err fathom_report_links_make(const struct fathom_report_tree *t,
				    struct fathom_report_links *ret, struct fathom_errinfo *reterr);
/* Sorts siblings: by total weight, the highest first, then by the names of their rows. */
fathom_err fathom_report_links_sort(const struct fathom_report_tree *t,
				    struct fathom_report_links *links,
				    struct fathom_errinfo *reterr);
void fathom_report_links_deinit(struct fathom_report_links *links);

/*
 * Visits all branches but the root, each before those below it, if enter() returns true for it;
 * leave() is called afterwards. Both may be NULL.
 */
void fathom_report_visit(const struct fathom_report_tree *t,
			 const struct fathom_report_links *links,
			 bool (*enter)(void *data, uint32_t branch),
			 void (*leave)(void *data, uint32_t branch), void *data);

/* Compares rows by name, module, file, line and numbers. */
int fathom_report_row_compare(const struct fathom_report_row *a, const struct fathom_report_row *b);

#endif
