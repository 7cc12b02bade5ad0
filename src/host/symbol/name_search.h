/* SPDX-License-Identifier: MIT */
/*
 * Finding symbols by many names at once: each table is passed over once for all of them. The
 * caller searches one module after the other, and takes what each has.
 */
#ifndef FATHOM_SYMBOL_NAME_SEARCH_H
#define FATHOM_SYMBOL_NAME_SEARCH_H

#include "host/base/memory.h"
#include "host/symbol/name_index.h"
#include "host/symbol/name_keys.h"
#include "host/symbol/tables.h"

/* A name that is looked for. */
struct fathom_wanted {
	struct fathom_str name;
	uint64_t address; /* once it is found */
	uint32_t match;   /* number + 1 of its match in the module being searched, or 0 */
	bool is_found;
	bool is_demangled; /* it is written as only demangled names are */
};

/* What the module being searched has for one name. */
struct fathom_name_match {
	uint32_t wanted; /* its number */
	uint64_t svma;
	struct fathom_contender best; /* of linked names in symbol tables */
	size_t item;                  /* of kallsyms */
	bool is_local;                /* best is: no other file knows it */
	bool whole;                   /* of demangled ones: with the parameters, or without any */
	bool ambiguous;               /* several functions differ in their parameters only */
};

/* Where one of several local symbols with one name stands. */
struct fathom_name_place {
	uint64_t address; /* while its module is being searched, svma */
	uint32_t wanted;
};

struct fathom_name_search {
	struct fathom_wanted *wanted; /* each name once */
	uint32_t *number_of;          /* of each name that was given: number in wanted */
	uint32_t n_wanted;
	uint32_t n_left; /* not found yet */
	struct fathom_name_keys keys;
	struct fathom_array matches; /* struct fathom_name_match, of one module */
	bool wants_all;              /* all places of local symbols */
	struct fathom_array places;  /* struct fathom_name_place */
	size_t n_taken;              /* of places: of modules that were searched before */
};

/* Begins a search for @n @names, which have to stay. FATHOM_E_MEMORY. */
fathom_err fathom_name_search_init(struct fathom_name_search *s, const char *const *names,
				   size_t n);
void fathom_name_search_deinit(struct fathom_name_search *s);

/*
 * Passes over table @t of @set for names as linked, which may carry a version. Of several symbols
 * with one name, in any table, the preferred is the match. Without memory, less is found.
 */
void fathom_symbols_search(const struct fathom_symbol_set *set, uint8_t t,
			   struct fathom_name_search *s);

/* Does the same by the index of the table's names. */
void fathom_symbols_search_index(const struct fathom_symbol_set *set, uint8_t t,
				 const struct fathom_name_index *x, struct fathom_name_search *s);

/*
 * Passes over all tables for demangled names, with their parameters, or without them where only one
 * function is called so.
 */
void fathom_symbols_search_demangled(const struct fathom_symbol_set *set,
				     struct fathom_name_search *s);

/* Whether demangled names are still looked for. */
bool fathom_name_search_wants_demangled(const struct fathom_name_search *s);

/*
 * Returns the match of name @number in the module being searched, added if there was none; NULL
 * without memory.
 */
struct fathom_name_match *fathom_name_search_match(struct fathom_name_search *s, uint32_t number);

/* Notes that a local symbol called @number stands at @svma; false without memory. */
bool fathom_name_search_add_place(struct fathom_name_search *s, uint32_t number, uint64_t svma);

/*
 * Finds the places of name @number, once the search has ended: *@ret has those of local symbols,
 * sorted, each once. Returns how many there are; 0 where the name is not that of local symbols.
 */
size_t fathom_name_search_places(struct fathom_name_search *s, uint32_t number,
				 const struct fathom_name_place **ret);

/*
 * Takes the matches of a module that is loaded at @bias, where @holds, which may be NULL, says of
 * their addresses that they hold. Forgets the others.
 */
void fathom_name_search_take(struct fathom_name_search *s, uint64_t bias,
			     bool (*holds)(uint64_t avma, const void *data), const void *data);

#endif
