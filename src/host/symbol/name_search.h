/* SPDX-License-Identifier: MIT */
/*
 * Finds symbols by many names at once, in one pass over each table. The caller searches one module
 * after the other, and takes what each has.
 */
#ifndef FATHOM_SYMBOL_NAME_SEARCH_H
#define FATHOM_SYMBOL_NAME_SEARCH_H

#include "host/base/memory.h"
#include "host/symbol/name_index.h"
#include "host/symbol/name_keys.h"
#include "host/symbol/tables.h"

/* A name to look up. */
struct fathom_wanted {
	struct fathom_str name;
	uint64_t address; /* once found */
	uint32_t match;   /* number + 1 of its match in the module being searched, or 0 */
	bool is_found;
	bool is_demangled; /* written as only demangled names are */
};

/* The match of one name in the module being searched. */
struct fathom_name_match {
	uint32_t wanted; /* number of the name */
	uint64_t svma;
	struct fathom_contender best; /* of linkage names in symbol tables */
	size_t item;                  /* its number in kallsyms */
	bool is_local;                /* best is local: no other file knows it */
	bool whole;     /* demangled: the name has all parameters, or there are none */
	bool ambiguous; /* demangled: several functions differ in their parameters only */
};

/* The address of one of several local symbols with one name. */
struct fathom_name_place {
	uint64_t address; /* svma while its module is being searched */
	uint32_t wanted;
};

struct fathom_name_search {
	struct fathom_wanted *wanted; /* each name once */
	uint32_t *number_of;          /* for each name that was given: number in wanted */
	uint32_t n_wanted;
	uint32_t n_left; /* not found yet */
	struct fathom_name_keys keys;
	struct fathom_array matches; /* struct fathom_name_match, of one module */
	bool wants_all;              /* collects all places of local symbols */
	struct fathom_array places;  /* struct fathom_name_place */
	size_t n_taken;              /* places of modules that were searched before */
};

/* Begins a search for @n @names, which must stay valid. Returns FATHOM_OK or FATHOM_E_MEMORY. */
fathom_err fathom_name_search_init(struct fathom_name_search *s, const char *const *names,
				   size_t n);
void fathom_name_search_deinit(struct fathom_name_search *s);

/*
 * Passes over table @t of @set for linkage names, which may carry a version. Of several symbols
 * with one name, in any table, the preferred one is the match. Finds less if out of memory.
 */
void fathom_symbols_search(const struct fathom_symbol_set *set, uint8_t t,
			   struct fathom_name_search *s);

/* Does the same by the index of the table's names. */
void fathom_symbols_search_index(const struct fathom_symbol_set *set, uint8_t t,
				 const struct fathom_name_index *x, struct fathom_name_search *s);

/*
 * Passes over all tables for demangled names, with their parameters or, if only one function is
 * called so, without.
 */
void fathom_symbols_search_demangled(const struct fathom_symbol_set *set,
				     struct fathom_name_search *s);

/* Returns whether demangled names are still looked for. */
bool fathom_name_search_wants_demangled(const struct fathom_name_search *s);

/* Returns the match of name @number in this module, added if needed; NULL if out of memory. */
struct fathom_name_match *fathom_name_search_match(struct fathom_name_search *s, uint32_t number);

/* Notes that a local symbol called @number is at @svma; returns false if out of memory. */
bool fathom_name_search_add_place(struct fathom_name_search *s, uint32_t number, uint64_t svma);

/*
 * Finds the places of name @number after the search: *@ret has those of local symbols, sorted,
 * without duplicates. Returns how many there are; 0 if the name is not that of local symbols.
 */
size_t fathom_name_search_places(struct fathom_name_search *s, uint32_t number,
				 const struct fathom_name_place **ret);

/*
 * Takes the matches of a module that is loaded at @bias, if @holds, which may be NULL, returns true
 * for their addresses. Forgets the others.
 */
void fathom_name_search_take(struct fathom_name_search *s, uint64_t bias,
			     bool (*holds)(uint64_t avma, const void *data), const void *data);

#endif
