/* SPDX-License-Identifier: MIT */
/* One function of a Go program, with its positions and the calls that were inlined into it. */
#ifndef FATHOM_GOLANG_GO_FUNCTION_H
#define FATHOM_GOLANG_GO_FUNCTION_H

#include "host/base/array.h"
#include "host/golang/pclntab.h"

/* [low, high) of the code, which has one position, and of one call. */
struct fathom_go_position {
	uint64_t low;
	uint64_t high;
	int32_t file; /* number in the function's unit */
	int32_t line;
	uint32_t call; /* the innermost; FATHOM_NONE: the function itself */
};

/* A call that was inlined. */
struct fathom_go_node {
	struct fathom_go_call call;
	uint32_t parent; /* FATHOM_NONE: the function */
	int32_t file;    /* of the call */
	int32_t line;
	/* Its calls, as a list, and its ranges: made by fathom_go_decode(). */
	uint32_t first_child;
	uint32_t next_sibling;
	uint32_t first_range;
	uint32_t n_ranges;
};

/* The end of a run, and its value. */
struct fathom_go_run {
	uint64_t high;
	int32_t value;
};

struct fathom_go_run_array {
	FATHOM_ARRAY_OF(struct fathom_go_run);
};

enum fathom_go_list { FATHOM_GO_FILES, FATHOM_GO_LINES, FATHOM_GO_CALLS, FATHOM_GO_LISTS };

struct fathom_go_positions {
	FATHOM_ARRAY_OF(struct fathom_go_position);
};

struct fathom_go_nodes {
	FATHOM_ARRAY_OF(struct fathom_go_node);
};

struct fathom_go_ranges {
	FATHOM_ARRAY_OF(struct fathom_range);
};

/* A function that was decoded; its memory serves the next one. */
struct fathom_go_decoded {
	struct fathom_go_function function;
	uint64_t end;
	struct fathom_go_run_array lists[FATHOM_GO_LISTS];
	struct fathom_go_positions positions; /* ascending */
	struct fathom_go_nodes nodes;
	struct fathom_go_ranges ranges;
	uint32_t first_node;             /* of the function's own list of calls */
	struct fathom_u32_array numbers; /* node by index in the tree; FATHOM_NONE */
	uint64_t runs_left;              /* that may still be read, of all functions */
};

void fathom_go_decoded_deinit(struct fathom_go_decoded *d);

/*
 * Decodes function @i of @t. Returns FATHOM_END if it is damaged; FATHOM_E_MEMORY. Positions of
 * which it is not known whose they are, or that are damaged, are left out.
 */
fathom_err fathom_go_decode(struct fathom_go_decoded *d, const struct fathom_pclntab *t,
			    uint32_t i);

#endif
