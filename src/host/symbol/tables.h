/* SPDX-License-Identifier: MIT */
/*
 * From an address to the symbol that names it, over all symbol tables of a module together.
 *
 * A few addresses are answered by one pass over the tables, which needs no preparation; more are
 * answered from an index, built once. Both follow the same rule:
 *
 * - Of the sized symbols that cover the address, the one that starts last wins; of several that
 *   start together, one that names the function that debug information has there (spelling.h); of
 *   those the preferred name (symtab.h).
 * - Else a sizeless symbol wins, if no other symbol starts between it and the address, no sized one
 *   covers its start (it is a label inside, and ends with it), and the address is not beyond the
 *   FDE that the symbol starts in. Where no FDE has its start, it ends where the next FDE begins,
 *   or where its code does (code_end.h).
 * - No symbol reaches beyond the section it is defined in.
 *
 * The rules of GNU addr2line and llvm-symbolizer, for the personalities, have indexes of their own.
 */
#ifndef FATHOM_SYMBOL_TABLES_H
#define FATHOM_SYMBOL_TABLES_H

#include "fathom/compat.h"
#include "host/file/object.h"
#include "host/symbol/bounds.h"
#include "host/symbol/spelling.h"
#include "safe/elf/symtab.h"

#define FATHOM_MAX_SYMTABS 4

struct fathom_symbol_table {
	struct fathom_symtab view;
	const struct fathom_object *object; /* the symbols use its section numbers */
	const struct fathom_opd *opd;       /* NULL: symbols of functions are at their code */
};

/*
 * .opd of 64-bit PowerPC's first ABI (ELFv1, 3.2.5): the symbol of a function is at its descriptor,
 * whose first word is the address of the code.
 */
struct fathom_opd {
	struct fathom_bytes bytes;
	uint64_t svma;
	const struct fathom_object *object; /* has the code */
};

/* The tables of one module, as views. */
struct fathom_symbol_set {
	struct fathom_symbol_table table[FATHOM_MAX_SYMTABS];
	uint32_t n_tables;
	struct fathom_object *main;                   /* has the code */
	struct fathom_opd opd;                        /* main's; zero on other machines */
	struct fathom_file *file[FATHOM_MAX_SYMTABS]; /* those that the tables are in */
	struct fathom_bounds *bounds;                 /* of functions; NULL: none */
};

/* Prepares @set, all zero, for the symbols of @main. @set and @bounds must stay where they are. */
void fathom_symbol_set_init(struct fathom_symbol_set *set, struct fathom_object *main,
			    struct fathom_bounds *bounds);

/* Adds the tables of @o to @set: .symtab, and .dynsym, through PT_DYNAMIC if needed. */
void fathom_symbol_set_add(struct fathom_symbol_set *set, const struct fathom_object *o,
			   enum fathom_source symtab_source);

/* Sets the source of all symbols of @set, which is still unused. */
void fathom_symbol_set_source(struct fathom_symbol_set *set, enum fathom_source source);

struct fathom_symbol_hit {
	uint64_t start;         /* svma */
	uint64_t size;          /* 0: not stated */
	struct fathom_str name; /* as linked, without version */
	struct fathom_str file; /* STT_FILE before it; only by the rules that want it */
	uint8_t source;
	bool shared; /* a symbol of another name covers the same code; set by a scan only */
};

/* Room for the longest name of bounds. */
#define FATHOM_BOUNDS_NAME 64

/* Returns the name of a hit that has bounds only: "func@[0x1139..0x1155]", in @buf. */
struct fathom_str fathom_symbol_bounds(const struct fathom_symbol_hit *hit,
				       char buf[FATHOM_BOUNDS_NAME]);

/*
 * Finds the symbol at @svma by a pass over the tables; returns false if none covers it. @view is
 * the block of debug information there, or NULL.
 */
bool fathom_symbols_scan(const struct fathom_symbol_set *set, uint64_t svma,
			 const struct fathom_block_view *view, struct fathom_symbol_hit *ret);

/* Finds the bounds of the FDE at @svma: a hit without a name. */
bool fathom_symbols_fde(const struct fathom_symbol_set *set, uint64_t svma,
			struct fathom_symbol_hit *ret);

/* Finds the symbol called @name, which may carry a version; returns false if there is none. */
bool fathom_symbols_find(const struct fathom_symbol_set *set, const char *name, uint64_t *ret);

/*
 * Does the same for a variable of @least to @most bytes, or of no stated size. Does not compare the
 * names of other symbols: that takes long.
 */
bool fathom_symbols_find_variable(const struct fathom_symbol_set *set, const char *name,
				  uint64_t least, uint64_t most, uint64_t *ret);

/* An index over all symbols of a set by address, for one rule (address_index.c). */
struct fathom_symbol_index;

/* Makes an index on up to @threads threads; NULL if out of memory. @m counts it. */
struct fathom_symbol_index *fathom_symbol_index_create(struct fathom_memory *m,
						       const struct fathom_symbol_set *set,
						       enum fathom_alias rule, unsigned threads);
void fathom_symbol_index_destroy(struct fathom_symbol_index *x);

/* Returns the number, below fathom_symbol_index_count(), of the symbol at @svma, or FATHOM_NONE. */
uint32_t fathom_symbol_index_at(const struct fathom_symbol_index *x, uint64_t svma);
/*
 * Returns whether other symbols start where symbol @number does: then debug information may know
 * which of them names the code.
 */
bool fathom_symbol_index_has_others(const struct fathom_symbol_index *x, uint32_t number);
/* Returns whether one of these others could be the name of another function. */
bool fathom_symbol_index_is_folded(const struct fathom_symbol_index *x, uint32_t number);
/*
 * Finds, of the symbols that start where symbol @number, the one at @svma, does, and cover @svma,
 * too, the one that names the function that debug information has there; @number if none does.
 */
uint32_t fathom_symbol_index_spelled(const struct fathom_symbol_index *x, uint32_t number,
				     uint64_t svma, const struct fathom_block_view *view);
/*
 * Puts the numbers of the symbols that start where symbol @number does in @group, the preferred one
 * first. Returns how many there are, @cap at most.
 */
uint32_t fathom_symbol_index_group(const struct fathom_symbol_index *x, uint32_t number,
				   uint32_t *group, uint32_t cap);
/*
 * Prefetching, for many look-ups whose addresses are spread: call each step for all addresses of a
 * group before the next step, so that the memory of the whole group is fetched at once. The third
 * returns what fathom_symbol_index_at() will; the others are for symbols whose names will be asked
 * for.
 */
void fathom_symbol_index_fetch_bucket(const struct fathom_symbol_index *x, uint64_t svma);
void fathom_symbol_index_fetch_starts(const struct fathom_symbol_index *x, uint64_t svma);
uint32_t fathom_symbol_index_fetch_symbol(const struct fathom_symbol_index *x, uint64_t svma);
void fathom_symbol_index_fetch_entry(const struct fathom_symbol_index *x, uint32_t number);
void fathom_symbol_index_fetch_name(const struct fathom_symbol_index *x, uint32_t number);
uint32_t fathom_symbol_index_count(const struct fathom_symbol_index *x);
/* Fills in all but the name, which costs more. */
void fathom_symbol_index_place(const struct fathom_symbol_index *x, uint32_t number,
			       struct fathom_symbol_hit *ret);
/* Finds the ranges: sorted starts and, for each, the symbol from there on. Returns how many. */
uint32_t fathom_symbol_index_starts(const struct fathom_symbol_index *x,
				    const uint64_t **ret_starts, const uint32_t **ret_winners);
struct fathom_str fathom_symbol_index_name(const struct fathom_symbol_index *x, uint32_t number);
/* Returns the source file that the symbol's table names for it (STT_FILE). */
struct fathom_str fathom_symbol_index_file(const struct fathom_symbol_index *x, uint32_t number);

/* Shared by tables.c and address_index.c. */

/* The range of addresses that the symbols of one section may name. */
struct fathom_symbol_region {
	uint64_t low;
	uint64_t high;
	bool code;
};

/* Finds the address and the region of @s; returns false if it is outside its region. */
bool fathom_symbol_place(const struct fathom_symbol_table *t, const struct fathom_symbol *s,
			 uint64_t *ret_svma, struct fathom_symbol_region *ret_region);

/*
 * Finds the code of the descriptor at @svma in .opd, and its region; returns false if there is
 * none. fathom_symbol_place() follows functions' symbols already.
 */
bool fathom_symbol_follow(const struct fathom_symbol_table *t, uint64_t svma, uint64_t *ret_svma,
			  struct fathom_symbol_region *ret_region);

/* A symbol that competes for an address. */
struct fathom_placed_contender {
	struct fathom_contender c;
	uint64_t svma;
	uint8_t table;
};

/* Returns false if @s may not name an address at all. */
bool fathom_symbol_contend(const struct fathom_symbol_set *set, uint8_t table,
			   const struct fathom_symbol *s, uint64_t svma,
			   struct fathom_placed_contender *ret);

/*
 * Returns where the code of a function ends that begins at @svma and has neither size nor FDE: at
 * @limit at the latest, which is the start of the next symbol, and if the code cannot be followed.
 */
uint64_t fathom_symbols_code_end(const struct fathom_symbol_set *set, uint64_t svma,
				 uint64_t limit);

void fathom_symbol_hit_from(const struct fathom_placed_contender *k,
			    const struct fathom_symbol_set *set, struct fathom_symbol_hit *ret);

#endif
