/* SPDX-License-Identifier: MIT */
/*
 * Making the answers of a batch. Each thread fills tables of its own, a part; an id says which part
 * and which entry, so nothing has to be merged when the threads are done.
 *
 * The frames of an answer depend on three things only: the row of the block, the symbol, and the
 * options. While addresses of one block are answered one after the other, a plan remembers the
 * frames that were made for its rows and calls.
 */
#ifndef FATHOM_SYMBOLIZE_ANSWERS_H
#define FATHOM_SYMBOLIZE_ANSWERS_H

#include "fathom/symbolize.h"
#include "host/base/memory.h"
#include "host/symbol/tables.h"
#include "safe/index/block.h"

#define FATHOM_PART_BITS 26 /* entries of one table of a part; the bits above number the part */
#define FATHOM_MAX_PARTS (1u << (32 - FATHOM_PART_BITS))

/* A set of strings or functions that are stored once: numbers plus 1, by hash. */
struct fathom_intern {
	uint32_t *table;
	size_t size; /* a power of two, or 0 */
};

/* A stub or function without a symbol that was named: code of @size bytes at @start. */
struct fathom_nameless {
	uint64_t start;
	uint64_t size; /* 0: the entry is empty */
	uint32_t id;
	uint8_t source;
};

/* Entries of a part's table of them; a power of two. */
#define FATHOM_NAMELESS 1024

struct fathom_part {
	_Alignas(FATHOM_CACHE_LINE) struct fathom_arena arena;
	struct fathom_array functions; /* struct fathom_function */
	struct fathom_array files;     /* struct fathom_source_file */
	struct fathom_array frames;    /* struct fathom_frame */
	struct fathom_intern function_set;
	struct fathom_intern file_set;
	struct fathom_array text; /* scratch: a name being made */
	fathom_err err;           /* the first failure: no answer of this batch can be trusted */
	uint32_t number;
	uint32_t flags; /* of the options */
	uint64_t bias;  /* of the module whose addresses are being answered */
	/* the block whose addresses are being answered */
	const struct fathom_block *block;
	uint32_t block_symbol;
	struct fathom_array plan; /* uint32_t: ids by function, file, node, row of the block */
	/* which symbol the block names: symbol to for symbol from, from low up to high */
	struct {
		const struct fathom_block *block;
		uint64_t low;
		uint64_t high;
		uint32_t from;
		uint32_t to;
	} named;
	/* the ids of symbols of an index, by their numbers */
	uint32_t *symbol_ids;
	struct fathom_nameless *nameless; /* FATHOM_NAMELESS entries, by address; NULL: none yet */
	struct fathom_nameless last_nameless;
};

struct fathom_answers {
	size_t n;
	struct fathom_answer *answers;
	struct fathom_module_info *modules;
	uint16_t n_modules;
	uint32_t n_parts;
	struct fathom_part parts[FATHOM_MAX_PARTS];
};

/* Answers without tables, @n of them that are not filled in; NULL without memory. */
struct fathom_answers *fathom_answers_create(size_t n);

/* The answer for an address that is in no module, or in none that says anything of it. */
static inline struct fathom_answer fathom_answer_without_module(uint64_t address,
								enum fathom_reason reason)
{
	return (struct fathom_answer){ .address = address,
				       .symbol = FATHOM_NONE,
				       .symbol_file = FATHOM_NONE,
				       .frame = FATHOM_NONE,
				       .module = FATHOM_NO_MODULE,
				       .reason = (uint8_t)reason };
}

/* Adds a module; *@ret is its number. Must not run beside threads that fill parts. */
fathom_err fathom_answers_add_module(struct fathom_answers *answers, const char *path,
				     struct fathom_bytes build_id, uint16_t *ret);

/*
 * When memory is short or a table is full, err is set, and FATHOM_NONE is returned where an id is
 * asked for. A chain of frames would then end too early: the whole batch has to fail.
 */

/* The function for a symbol, with what debug information calls it (may be empty). */
uint32_t fathom_part_symbol(struct fathom_part *p, const struct fathom_symbol_hit *hit);

/* A source file; FATHOM_NONE where no path is stated. */
uint32_t fathom_part_file(struct fathom_part *p, struct fathom_str path);

/* Prepares the part, number @number, for addresses of another module. */
void fathom_part_begin(struct fathom_part *p, unsigned number, uint32_t flags, uint64_t bias);

/* Forgets the block: its memory may be given back. */
void fathom_part_leave_block(struct fathom_part *p);

/*
 * The innermost frame for the row @row, number @index, of @view; its outermost frame is called
 * @symbol, unless that is FATHOM_NONE or the options want the names of the debug information.
 */
uint32_t fathom_part_frame(struct fathom_part *p, struct fathom_block_view view,
			   const struct fathom_block_row *row, uint32_t index, uint32_t symbol);

/* A frame of its own: @symbol, at line @line of @path. */
uint32_t fathom_part_place(struct fathom_part *p, uint32_t symbol, struct fathom_str path,
			   uint32_t line);

/* The physical function of @view, or FATHOM_NONE when it stands outside functions. */
uint32_t fathom_part_physical(struct fathom_part *p, struct fathom_block_view view);

/*
 * The function for the symbol @id once more, demangled as Ada if that is the language of @view's
 * physical function; else @id itself. A symbol alone does not say what language it is of.
 */
uint32_t fathom_part_ada_symbol(struct fathom_part *p, struct fathom_block_view view, uint32_t id);

void fathom_part_deinit(struct fathom_part *p);

#endif
