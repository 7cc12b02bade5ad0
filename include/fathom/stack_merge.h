/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Stacks of many processes as one tree: which ranks of a parallel program, or which of any other
 * processes that have numbers, are in which functions.
 */
#ifndef FATHOM_STACK_MERGE_H
#define FATHOM_STACK_MERGE_H

#include <fathom/error.h>
#include <fathom/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A tree that is being made. Opaque. */
struct fathom_stack_merge;

/** Bytes of the longest line that is added. */
#define FATHOM_STACK_MERGE_LINE_MAX ((size_t)256 << 20)

/** Ranks from first to last. */
struct fathom_rank_range {
	uint32_t first;
	uint32_t last;
};

/** A node of the tree: a frame, with all that called it. */
struct fathom_stack_node {
	/** a function; "??"; or a text in brackets: why a stack is not whole, or not there */
	const char *function;
	const char *module; /**< last part of its path, or of the path of a script; NULL: none */
	const struct fathom_rank_range *ranges; /**< whose stacks lead here, in their order */
	uint32_t n_ranges;
	uint32_t parent; /**< index of the caller; of node 0, which stands for all: 0 */
	uint32_t depth;  /**< of node 0: 0 */
	uint32_t reserved;
	uint64_t n_ranks;
	uint64_t n_threads; /**< whose stacks lead here */
	uint64_t n_ends;    /**< of them, whose stacks end here */
};

/**
 * Makes an empty tree.
 *
 * Safety: mt-safe
 * Memory: *@ret_merge is the caller's, to be freed with fathom_stack_merge_free()
 * Returns: FATHOM_OK; FATHOM_E_MEMORY
 */
FATHOM_API fathom_err fathom_stack_merge_create(struct fathom *session,
						struct fathom_stack_merge **ret_merge,
						struct fathom_errinfo *reterr);

/**
 * Safety: mt-safe per object
 * Memory: frees @merge, which may be NULL
 * Returns: nothing
 */
FATHOM_API void fathom_stack_merge_free(struct fathom_stack_merge *merge);

/**
 * Adds what @line says, of @size bytes: a thread, as "fathom stack --json --rank=N" prints it; or
 * lines of another tree, as "fathom stack --merge --json" does, in their order. In whatever order
 * threads and trees are added, the tree is the same. An empty line says nothing.
 *
 * Safety: mt-safe per object
 * Memory: keeps nothing of @line
 * Returns: FATHOM_OK; FATHOM_E_FORMAT: that is no such line, as @reterr says, and nothing of it was
 *	added; nodes of a tree that follow it are refused as well. FATHOM_E_LIMIT: it does not fit
 *	the session's memory budget, or is longer than FATHOM_STACK_MERGE_LINE_MAX, or the tree
 *	would have more than 2^31 nodes; FATHOM_E_MEMORY. After these two a part of the line may be
 *	in the tree.
 */
FATHOM_API fathom_err fathom_stack_merge_add(struct fathom_stack_merge *merge, const char *line,
					     size_t size, struct fathom_errinfo *reterr);

/**
 * Returns the nodes: first one that stands for all, then each node before those that it has called.
 * Of nodes with one caller, those of the fewest ranks come first, then those of the fewest threads,
 * then by name.
 *
 * Safety: mt-safe per object
 * Memory: the nodes belong to @merge, and are valid until more is added
 * Returns: FATHOM_OK; FATHOM_E_MEMORY
 */
FATHOM_API fathom_err fathom_stack_merge_nodes(struct fathom_stack_merge *merge,
					       const struct fathom_stack_node **ret_nodes,
					       size_t *ret_n, struct fathom_errinfo *reterr);

#ifdef __cplusplus
}
#endif

#endif
