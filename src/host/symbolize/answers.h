/* SPDX-License-Identifier: MIT */
/*
 * Makes the answers of a batch. Each thread fills its own tables, a part. Answers and frames point
 * into them, so items of a part never move. Ids are indexes within one part.
 *
 * The frames of an answer depend only on the block's row, the symbol, and the options. While
 * consecutive addresses of one block are answered, a plan caches the frames of its rows and calls.
 */
#ifndef FATHOM_SYMBOLIZE_ANSWERS_H
#define FATHOM_SYMBOLIZE_ANSWERS_H

#include "fathom/compat.h"
#include "fathom/symbolize.h"
#include "host/base/array.h"
#include "host/base/memory.h"
#include "host/symbol/tables.h"
#include "safe/base/pc.h"
#include "safe/index/block.h"

#define FATHOM_MAX_PARTS 64

/* Bits of fathom_batch_options.flags, in addition to those of fathom_symbolize_options.flags. */
enum {
	FATHOM_BATCH_COMPAT = 1u << 16,      /* keep the details that fathom/compat.h reads */
	FATHOM_BATCH_DWARF_NAMES = 1u << 17, /* FATHOM_DWARF_NAMES */
	FATHOM_BATCH_VARIABLES = 1u << 18,   /* FATHOM_VARIABLES */
	/*
	 * With FATHOM_NAMES_ONLY: where symbols of several functions start at one address, debug
	 * information is read to tell which of them the code is, as it is without
	 * FATHOM_NAMES_ONLY. Linkers and compilers that fold equal functions (ICF) leave such
	 * symbols.
	 */
	FATHOM_BATCH_UNFOLD = 1u << 19
};

/* How a batch is answered. */
struct fathom_batch_options {
	uint32_t flags;
	enum fathom_alias alias;
	const uint8_t *kinds; /* enum fathom_pc_kind of each address; NULL: all are exact */
};

/* Returns the address to look up for address @i of a batch. */
static inline uint64_t fathom_looked_up(const struct fathom_batch_options *o,
					const uint64_t *addresses, size_t i)
{
	return fathom_pc_subtract(addresses[i], o->kinds ? o->kinds[i] : FATHOM_PC_EXACT);
}

/* A source file. */
struct fathom_source_file {
	const char *path;
	uint32_t path_size;
	uint32_t number; /* index in its part */
};

/* A function's names. */
struct fathom_answer_function {
	const char *name;
	const char *linkage_name;
	const char *plain_name;
	const struct fathom_source_file *decl_file; /* NULL without FATHOM_DECLARATIONS */
	uint32_t name_size;
	uint32_t linkage_size;
	uint32_t flags; /* FATHOM_BLOCK_ of a function */
	uint32_t decl_line;
};

/* A frame with the details that fathom/compat.h reads. */
struct fathom_compat_frame {
	struct fathom_frame frame;
	const struct fathom_answer_function *function;
};

/* The details of an answer that fathom/compat.h reads. */
struct fathom_compat_extra {
	const struct fathom_answer_function *symbol;
	const struct fathom_source_file *file; /* of the symbol */
};

/* A hash set of interned strings or functions; entries are numbers plus 1. */
struct fathom_intern {
	uint32_t *table;
	size_t size; /* a power of two, or 0 */
};

/* A named stub or function without a symbol: size bytes of code at start. */
struct fathom_nameless {
	uint64_t start;
	uint64_t size; /* 0: empty entry */
	uint32_t id;
	uint8_t source;
};

/* A cached id. */
struct fathom_planned {
	uint32_t number; /* of the plan that it is of; 0: none */
	uint32_t id;
};

/* Entries of a part's table of struct fathom_nameless; a power of two. */
#define FATHOM_NAMELESS 1024

struct fathom_part {
	_Alignas(FATHOM_CACHE_LINE) struct fathom_arena arena;
	struct fathom_items functions; /* struct fathom_answer_function */
	struct fathom_items files;     /* struct fathom_source_file */
	struct fathom_items frames;    /* struct fathom_frame, or struct fathom_compat_frame */
	struct fathom_intern function_set;
	struct fathom_intern file_set;
	struct fathom_bytes_array text; /* scratch: a name being made */
	fathom_err err;                 /* first failure, which invalidates the whole batch */
	uint32_t number;
	uint32_t flags; /* of struct fathom_batch_options */
	uint64_t bias;  /* of the module whose addresses are being answered */
	/* current block */
	const struct fathom_block *block;
	uint32_t block_symbol;
	struct {
		FATHOM_ARRAY_OF(struct fathom_planned);
	} plan;               /* cached ids by function, file, node and row of the block */
	uint32_t plan_number; /* of the block under its symbol, from 1 */
	/* the block names symbol to instead of symbol from, in [low, high) */
	struct {
		const struct fathom_block *block;
		uint64_t low;
		uint64_t high;
		uint32_t from;
		uint32_t to;
	} named;
	/* ids of an index's symbols, by number */
	uint32_t *symbol_ids;
	struct fathom_nameless *nameless; /* FATHOM_NAMELESS entries, by address; NULL: none yet */
	struct fathom_nameless last_nameless;
};

struct fathom_answers {
	size_t n;
	uint64_t serial; /* differs from that of all other answers of one view */
	struct fathom_answer *answers;
	struct fathom_compat_extra *extra; /* of each answer; NULL without FATHOM_BATCH_COMPAT */
	uint32_t n_parts;
	struct fathom_part parts[FATHOM_MAX_PARTS];
};

/* Functions, files or frames of one part. */
#define FATHOM_MAX_ITEMS ((1u << 26) - 1)

/* Creates @n blank answers without tables; returns NULL without memory. */
struct fathom_answers *fathom_answers_create(size_t n, uint32_t flags);

/* Returns the answer for an address that no module covers or describes. */
static inline struct fathom_answer fathom_answer_without_module(uint64_t address,
								enum fathom_reason reason)
{
	return (struct fathom_answer){ .pc = { .address = address },
				       .module_address = FATHOM_NO_ADDRESS,
				       .reason = (uint8_t)reason };
}

/*
 * Forgets the details of answer @i that fathom/compat.h reads. Returns the answer itself, which the
 * caller sets anew.
 */
static inline struct fathom_answer *fathom_answers_renew(struct fathom_answers *answers, size_t i)
{
	if (answers->extra)
		answers->extra[i] = (struct fathom_compat_extra){ NULL, NULL };
	return &answers->answers[i];
}

/*
 * Finishes the answers: frees scratch memory and merges equal frames that several threads or blocks
 * have made. Returns false without memory.
 */
bool fathom_answers_finish(struct fathom_answers *answers);

/* Adds a module; returns NULL without memory. Must not run while threads fill parts. */
const struct fathom_module_info *fathom_answers_add_module(struct fathom_answers *answers,
							   const char *path,
							   struct fathom_bytes build_id,
							   bool is_unverified);

struct fathom_holder;

/* Adds the module of @h to @answers once, and sets h->info and h->serial. FATHOM_E_MEMORY. */
fathom_err fathom_answers_describe(struct fathom_answers *answers, struct fathom_holder *h);

/*
 * If memory is short or a table is full, these functions set err, and return FATHOM_NONE for an id.
 * Chains of frames may then be incomplete, so the whole batch must fail.
 */

/* Returns the function for a symbol. */
uint32_t fathom_part_symbol(struct fathom_part *p, const struct fathom_symbol_hit *hit);

/* Returns the function with this @id; NULL for FATHOM_NONE. */
static inline const struct fathom_answer_function *fathom_part_function(const struct fathom_part *p,
									uint32_t id)
{
	return id == FATHOM_NONE ? NULL : fathom_items_at(&p->functions, id);
}

/* Names @a, one of @answers, after function @id of @p. */
void fathom_part_name_answer(const struct fathom_part *p, struct fathom_answers *answers,
			     struct fathom_answer *a, uint32_t id);

/* Returns the source file for @path; NULL if that is empty. */
const struct fathom_source_file *fathom_part_file(struct fathom_part *p, struct fathom_str path);

/* Prepares part number @number for addresses of another module. */
void fathom_part_begin(struct fathom_part *p, unsigned number, uint32_t flags, uint64_t bias);

/* Forgets the block, so that its memory can be released. */
void fathom_part_leave_block(struct fathom_part *p);

/*
 * Returns the innermost frame for row @row, number @index, of @view. The outermost frame is named
 * after @symbol, unless that is FATHOM_NONE or the options select the names of debug information.
 */
const struct fathom_frame *fathom_part_frame(struct fathom_part *p, struct fathom_block_view view,
					     const struct fathom_block_row *row, uint32_t index,
					     uint32_t symbol);

/* Returns a single frame: @symbol, at line @line of @path. */
const struct fathom_frame *fathom_part_place(struct fathom_part *p, uint32_t symbol,
					     struct fathom_str path, uint32_t line);

/* Returns the physical function of @view, or FATHOM_NONE outside functions. */
uint32_t fathom_part_physical(struct fathom_part *p, struct fathom_block_view view);

/*
 * Returns symbol @id demangled as Ada if that is the language of @view's physical function, which
 * the symbol alone does not tell; else @id itself.
 */
uint32_t fathom_part_ada_symbol(struct fathom_part *p, struct fathom_block_view view, uint32_t id);

void fathom_part_deinit(struct fathom_part *p);

#endif
