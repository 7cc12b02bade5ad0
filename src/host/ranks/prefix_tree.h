/* SPDX-License-Identifier: MIT */
/* The tree of merged stacks under construction. */
#ifndef FATHOM_RANKS_PREFIX_TREE_H
#define FATHOM_RANKS_PREFIX_TREE_H

#include "fathom/stack_merge.h"
#include "host/base/array.h"
#include "host/base/context.h"
#include "host/base/key_map.h"
#include "host/base/name_table.h"

/* Divides the function of a label from its module. */
#define FATHOM_MERGE_MODULE '\1'

/* No more than that is counted. */
#define FATHOM_MERGE_MOST (UINT64_C(1) << 62)

struct fathom_rank_ranges {
	FATHOM_ARRAY_OF(struct fathom_rank_range);
};

struct fathom_merge_node {
	uint32_t parent;
	uint32_t label; /* number in labels */
	struct fathom_rank_ranges ranges;
	uint64_t n_threads;
	uint64_t n_ends;
};

/* A line that was read, and not added yet. */
struct fathom_merge_line {
	enum { FATHOM_MERGE_THREAD, FATHOM_MERGE_ALL, FATHOM_MERGE_BRANCH } kind;
	uint64_t depth; /* of a branch */
	struct fathom_rank_ranges ranges;
	uint64_t n_threads;
	uint64_t n_ends;
	struct fathom_u32_array labels; /* of a thread the innermost first; of a branch one */
};

struct fathom_stack_merge {
	struct fathom *session;
	struct fathom_name_table labels;
	struct fathom_key_map children; /* nodes by parent and label */
	struct {
		FATHOM_ARRAY_OF(struct fathom_merge_node);
	} nodes; /* the first one stands for all */
	/* Of the other tree whose lines are added: the node of each depth. */
	struct fathom_u32_array path;
	/* As they were asked for last. */
	struct {
		FATHOM_ARRAY_OF(struct fathom_stack_node);
	} shown;
	struct fathom_arena texts; /* of shown */
	uint64_t label_bytes;      /* of labels, about */
	uint64_t counted;          /* bytes of all of this, about, in the session's budget */
};

/*
 * Reads the JSON of @line into *@ret, which is all zero, its labels into those of @m. Both arrays of
 * *@ret are to be freed, also after a failure. FATHOM_E_FORMAT; FATHOM_E_MEMORY.
 */
fathom_err fathom_merge_line_read(struct fathom_stack_merge *m, struct fathom_bytes line,
				  struct fathom_merge_line *ret, struct fathom_errinfo *reterr);

#endif
