/* SPDX-License-Identifier: MIT */
/* The tree of a page: what calls what. A function below one caller is one node. */
#ifndef FATHOM_PAGE_MERGED_TREE_H
#define FATHOM_PAGE_MERGED_TREE_H

#include "fathom/error.h"
#include "host/base/key_map.h"
#include "host/base/memory.h"
#include "host/page/data_columns.h"

struct fathom_page_node {
	uint32_t parent; /* it has a lower number; node 0 is the root */
	uint32_t function;
	/*
	 * Weights: its own and, once the tree is numbered, with those below it: first those that
	 * the page shows at first, which siblings are sorted by.
	 */
	uint64_t weights[2];
	uint32_t number; /* in the page: after its parent, next to all below it */
};

/* All zero but memory, there is none. */
struct fathom_page_tree {
	FATHOM_ARRAY_OF(struct fathom_page_node);
	const struct fathom_memory *memory;
	struct fathom_key_map children; /* by parent and function */
	bool is_too_large;              /* for the memory budget */
	bool no_memory;
};

/* Makes the root. */
void fathom_page_tree_init(struct fathom_page_tree *t);
/* Returns the node of @function below @parent; 0 if there is no room. */
uint32_t fathom_page_child(struct fathom_page_tree *t, uint32_t parent, uint32_t function);
/* Sums all up and numbers the nodes: those of siblings first that weigh most. */
void fathom_page_tree_number(struct fathom_page_tree *t);
/* Appends the nodes but the root in the order of their numbers, as distances to their parents. */
void fathom_page_tree_put(const struct fathom_page_tree *t, struct fathom_page_column *parents,
			  struct fathom_page_column *functions);
void fathom_page_tree_deinit(struct fathom_page_tree *t);

#endif
