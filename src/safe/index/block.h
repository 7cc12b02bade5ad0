/* SPDX-License-Identifier: MIT */
/*
 * A block: all that is known of one contiguous range of code, usually a function: which file, line
 * and inlined call each address belongs to. It is position independent, so the same bytes serve in
 * memory and in the cache file; a search reads them and nothing else, so it may run anywhere.
 *
 *	struct fathom_block
 *	rows       n_rows, sorted by offset; narrow or wide
 *	nodes      n_nodes: the physical function (node 0) and the calls inlined into it
 *	functions  n_functions: names
 *	files      n_files: string references
 *	declared   n_functions: where each is declared; only with FATHOM_BLOCK_DECLARED
 *	strings    pool_size bytes; 0 in cache files, whose blocks share one pool
 *
 * A string reference is an offset in the pool, 0 for none; there stand four bytes of length, the
 * text, and a NUL. Everything is in this machine's byte order: cache files are not carried around.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_INDEX_BLOCK_H
#define FATHOM_INDEX_BLOCK_H

#include "safe/base/bytes.h"

#define FATHOM_BLOCK_WIDE     1u /* the form of the rows */
#define FATHOM_BLOCK_DAMAGED  2u /* made from damaged debug information: parts may be missing */
#define FATHOM_BLOCK_DECLARED 4u /* says where functions are declared; never in cache files */

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

/* Stands for "none" in files and nodes. */
#define FATHOM_BLOCK_NONE UINT32_MAX

/* Stands for "none" in the start of a node. */
#define FATHOM_BLOCK_NO_START UINT64_MAX

/* What holds from off up to the next row. */
struct fathom_block_row {
	uint64_t off; /* from low */
	uint32_t line;
	uint32_t column;
	uint32_t discriminator;
	uint32_t file; /* FATHOM_BLOCK_NONE: no line is known here */
	uint32_t node; /* FATHOM_BLOCK_NONE: no function */
	uint32_t reserved;
};

/* The same where every number is small, as nearly everywhere; 0xffff stands for none. */
struct fathom_block_narrow {
	uint32_t off;
	uint32_t line;
	uint16_t column;
	uint16_t discriminator;
	uint16_t file;
	uint16_t node;
};

/* One call: the physical function has no parent; the others say where they were called. */
struct fathom_block_node {
	uint32_t parent; /* a smaller number, or FATHOM_BLOCK_NONE */
	uint32_t function;
	uint32_t call_file;
	uint32_t call_line;
	uint32_t call_column;
	uint32_t discriminator;
	uint64_t start; /* from low: lowest address of this copy */
};

#define FATHOM_BLOCK_ADA 1u /* the name is demangled as Ada */
#define FATHOM_BLOCK_UNMANGLED                                            \
	2u /* the language does not mangle: the name is also the linker's \
	    */

#define FATHOM_BLOCK_FOLDED \
	4u /* behind function 0: another name of it, or of a function with the same code */

struct fathom_block_function {
	uint32_t name; /* string references */
	uint32_t linkage;
	uint32_t flags;
};

struct fathom_block_declaration {
	uint32_t file; /* FATHOM_BLOCK_NONE: not known */
	uint32_t line; /* 0: not known */
};

struct fathom_index;

/* A block with what its strings stand in: its own pool, or the index file it is in. */
struct fathom_block_view {
	const struct fathom_block *block;
	struct fathom_bytes pool;
	const struct fathom_index *index; /* NULL: the pool is trusted memory */
};

/* The bytes that a block of these counts takes, without pool, or 0 when that overflows. */
uint64_t fathom_block_bytes(uint32_t flags, uint64_t n_rows, uint64_t n_nodes, uint64_t n_functions,
			    uint64_t n_files);

/* Whether a block whose counts come from a file fits the @available bytes from its start. */
bool fathom_block_is_sound(const struct fathom_block *b, uint64_t available);

/* Row @i, which must be below n_rows. */
void fathom_block_get_row(const struct fathom_block *b, uint32_t i, struct fathom_block_row *ret);

/* The row that holds at @svma; false when the block says nothing about it. */
bool fathom_block_find(const struct fathom_block *b, uint64_t svma, struct fathom_block_row *ret,
		       uint32_t *ret_index);

/* Parts by number; false when the number is out of range. A node's parent is below it. */
bool fathom_block_node(const struct fathom_block *b, uint32_t i, struct fathom_block_node *ret);
bool fathom_block_function(const struct fathom_block *b, uint32_t i,
			   struct fathom_block_function *ret);
bool fathom_block_declaration(const struct fathom_block *b, uint32_t i,
			      struct fathom_block_declaration *ret);
bool fathom_block_file(const struct fathom_block *b, uint32_t i, uint32_t *ret_string);

/* The string behind a reference; data is NULL for none and for what is damaged. */
struct fathom_str fathom_block_string(const struct fathom_block_view *view, uint32_t reference);

/* Where the parts stand, for whoever builds a block of known counts. */
void *fathom_block_rows(struct fathom_block *b);
struct fathom_block_node *fathom_block_nodes(struct fathom_block *b);
struct fathom_block_function *fathom_block_functions(struct fathom_block *b);
uint32_t *fathom_block_files(struct fathom_block *b);
struct fathom_block_declaration *fathom_block_declarations(struct fathom_block *b);
char *fathom_block_pool(struct fathom_block *b);

/* The view of a block that carries its own pool. */
struct fathom_block_view fathom_block_own_view(const struct fathom_block *b);

#endif
