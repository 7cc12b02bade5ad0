/* SPDX-License-Identifier: MIT */
/*
 * Turns debugging entries and line rows into blocks (safe/index/block.h): lays the inlined calls of
 * a function over its rows, which makes one sorted list.
 */
#ifndef FATHOM_MODULE_DECODE_H
#define FATHOM_MODULE_DECODE_H

#include "host/base/array.h"
#include "host/module/debug.h"
#include "host/module/unit_data.h"

/* A range of code of an inlined call. Calls are numbered in the order of their entries. */
struct fathom_syscall_range {
	uint64_t low;
	uint64_t high;
	uint32_t node;
};

struct fathom_syscall_ranges {
	FATHOM_ARRAY_OF(struct fathom_syscall_range);
};

/* An inlined call whose own inlined calls are being read. */
struct fathom_inlined_call {
	uint32_t depth;
	uint32_t node;
};

struct fathom_inlined_calls {
	FATHOM_ARRAY_OF(struct fathom_inlined_call);
};

/* The number of a file or function in the block with this stamp. */
struct fathom_local {
	uint32_t stamp;
	uint32_t number;
};

struct fathom_locals {
	FATHOM_ARRAY_OF(struct fathom_local);
};

struct fathom_block_nodes {
	FATHOM_ARRAY_OF(struct fathom_block_node);
};

struct fathom_block_row_array {
	FATHOM_ARRAY_OF(struct fathom_block_row);
};

struct fathom_block_function_array {
	FATHOM_ARRAY_OF(struct fathom_block_function);
};

struct fathom_block_declaration_array {
	FATHOM_ARRAY_OF(struct fathom_block_declaration);
};

/* The scratch memory of a worker that makes blocks. */
struct fathom_block_scratch {
	struct fathom_syscall_ranges intervals;
	struct fathom_syscall_ranges sorted; /* the same, sorted by start */
	struct fathom_syscall_ranges active; /* those that cover the position */
	struct fathom_keyed_array keyed;
	struct fathom_inlined_calls calls;
	struct fathom_block_nodes nodes;
	struct fathom_u64_array folded; /* other functions folded with this one */
	struct fathom_u32_array local_nodes;
	struct fathom_locals local_names;
	struct fathom_locals local_files;
	uint32_t stamp; /* of the block being built: struct fathom_local is valid for it */
	/* The parts of that block. */
	struct fathom_block_row_array out_rows;
	struct fathom_block_function_array out_functions;
	struct fathom_block_declaration_array out_declared; /* only with FATHOM_DECLARATIONS */
	struct fathom_u32_array out_files;
};

void fathom_block_scratch_deinit(struct fathom_block_scratch *scratch);

/*
 * Makes the blocks of the worker's wants, which are sorted by from, and publishes them in the slots
 * of @data. Returns FATHOM_OK or the worst error; also then, except after FATHOM_E_MEMORY, the
 * blocks are made of what could be read.
 */
fathom_err fathom_decode(struct fathom_worker *w, struct fathom_debug *d,
			 const struct fathom_open_unit *u, struct fathom_unit_data *data,
			 struct fathom_errinfo *reterr);

#endif
