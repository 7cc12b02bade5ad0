/* SPDX-License-Identifier: MIT */
/*
 * A block: all that is known of one contiguous range of code, usually a function: the file, line
 * and inlined call of each address. It is position independent, so memory and the cache file hold
 * the same bytes. A search reads only the block, so it may run anywhere.
 *
 *	struct fathom_block
 *	rows       n_rows, sorted by offset; narrow or wide
 *	nodes      n_nodes: the physical function (node 0) and the calls inlined into it
 *	functions  n_functions: names
 *	files      n_files: string references
 *	declared   n_functions: where each is declared; only with FATHOM_BLOCK_DECLARED
 *	strings    pool_size bytes; 0 in cache files, whose blocks share one pool
 *
 * A string reference is an offset in the pool, 0 for none. The pool has four bytes of length there,
 * then the text, then a NUL. Everything is in this machine's byte order: cache files stay on it.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_INDEX_BLOCK_H
#define FATHOM_INDEX_BLOCK_H

#include "safe/base/bytes.h"

#define FATHOM_BLOCK_WIDE     1u /* rows are fathom_block_row, else fathom_block_narrow */
#define FATHOM_BLOCK_DAMAGED  2u /* made from damaged debug information: parts may be missing */
#define FATHOM_BLOCK_DECLARED 4u /* has the declarations; never in cache files */

struct fathom_block {
	uint64_t low;   /* svma of the first byte of code */
	uint64_t size;  /* bytes of code */
	uint64_t bytes; /* of the whole block, a multiple of 8 */
	uint32_t flags;
	uint32_t n_rows;
	uint32_t n_nodes;
	uint32_t n_functions;
	uint32_t n_files;
	uint32_t pool_size;
};

/* No file, no node. */
#define FATHOM_BLOCK_NONE UINT32_MAX

/* No start of a node. */
#define FATHOM_BLOCK_NO_START UINT64_MAX

/* Holds from off up to the next row. */
struct fathom_block_row {
	uint64_t off; /* from low */
	uint32_t line;
	uint32_t column;
	uint32_t discriminator;
	uint32_t file; /* FATHOM_BLOCK_NONE: no line is known */
	uint32_t node; /* FATHOM_BLOCK_NONE: no function */
	uint32_t reserved;
};

/* A row whose numbers are all small, as nearly everywhere; 0xffff stands for none. */
struct fathom_block_narrow {
	uint32_t off;
	uint32_t line;
	uint16_t column;
	uint16_t discriminator;
	uint16_t file;
	uint16_t node;
};

/* The physical function, which has no parent, or a call inlined into it, with its call site. */
struct fathom_block_node {
	uint32_t parent; /* a smaller number, or FATHOM_BLOCK_NONE */
	uint32_t function;
	uint32_t call_file;
	uint32_t call_line;
	uint32_t call_column;
	uint32_t discriminator;
	uint64_t start; /* from low: lowest address of this copy */
};

#define FATHOM_BLOCK_ADA       1u /* the name is demangled as Ada */
#define FATHOM_BLOCK_UNMANGLED 2u /* the name is also the linkage name */
/* After function 0: another name of it, or of a function with the same code. */
#define FATHOM_BLOCK_FOLDED 4u

struct fathom_block_function {
	uint32_t name; /* string reference, as linkage */
	uint32_t linkage;
	uint32_t flags;
};

struct fathom_block_declaration {
	uint32_t file; /* FATHOM_BLOCK_NONE: unknown */
	uint32_t line; /* 0: unknown */
};

struct fathom_index;

/* A block and the pool of its strings: its own, or that of the index file that it is in. */
struct fathom_block_view {
	const struct fathom_block *block;
	struct fathom_bytes pool;
	const struct fathom_index *index; /* NULL if the pool is trusted memory */
};

/* Returns the bytes of a block with these counts, without its pool; 0 if that overflows. */
uint64_t fathom_block_bytes(uint32_t flags, uint64_t n_rows, uint64_t n_nodes, uint64_t n_functions,
			    uint64_t n_files);

/* Returns whether a block whose counts come from a file fits into @available bytes. */
bool fathom_block_is_sound(const struct fathom_block *b, uint64_t available);

/* Reads row @i, which must be below n_rows. */
void fathom_block_get_row(const struct fathom_block *b, uint32_t i, struct fathom_block_row *ret);

/* Finds the row that holds at @svma. Returns false if the block has none. */
bool fathom_block_find(const struct fathom_block *b, uint64_t svma, struct fathom_block_row *ret,
		       uint32_t *ret_index);

/* Read part @i. Return false if @i is out of range. A node's parent has a smaller number. */
bool fathom_block_node(const struct fathom_block *b, uint32_t i, struct fathom_block_node *ret);
bool fathom_block_function(const struct fathom_block *b, uint32_t i,
			   struct fathom_block_function *ret);
bool fathom_block_declaration(const struct fathom_block *b, uint32_t i,
			      struct fathom_block_declaration *ret);
bool fathom_block_file(const struct fathom_block *b, uint32_t i, uint32_t *ret_string);

/* Returns the string after @reference; data is NULL for none and for a damaged one. */
struct fathom_str fathom_block_string(const struct fathom_block_view *view, uint32_t reference);

/* Return where the parts stand, for code that builds a block of known counts. */
void *fathom_block_rows(struct fathom_block *b);
struct fathom_block_node *fathom_block_nodes(struct fathom_block *b);
struct fathom_block_function *fathom_block_functions(struct fathom_block *b);
uint32_t *fathom_block_files(struct fathom_block *b);
struct fathom_block_declaration *fathom_block_declarations(struct fathom_block *b);
char *fathom_block_pool(struct fathom_block *b);

/* Returns the view of a block that carries its own pool. */
struct fathom_block_view fathom_block_own_view(const struct fathom_block *b);

#endif
