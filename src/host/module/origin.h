/* SPDX-License-Identifier: MIT */
/*
 * The names of a function. They often stand not in its own entry but in the abstract function or
 * the declaration that it refers to, possibly in another unit or in the supplementary file.
 */
#ifndef FATHOM_MODULE_ORIGIN_H
#define FATHOM_MODULE_ORIGIN_H

#include "host/base/array.h"
#include "host/module/debug.h"

/* The names of the entry at off of the view with this serial. Strings point into the sections. */
struct fathom_names {
	uint64_t serial;
	uint64_t off;
	struct fathom_str name;    /* DW_AT_name */
	struct fathom_str linkage; /* DW_AT_linkage_name */
	uint32_t decl_file;        /* as the unit's line table counts, or FATHOM_BLOCK_NONE */
	uint32_t decl_line;        /* 0: none */
	bool has_decl_file;        /* a file is stated, even by a number of another unit's table */
	uint32_t flags;            /* FATHOM_BLOCK_ of struct fathom_block_function */
};

struct fathom_worker;

struct fathom_names_array {
	FATHOM_ARRAY_OF(struct fathom_names);
};

/* The names that a worker has found for one unit, by entry. */
struct fathom_origins {
	struct fathom_names_array names;
	struct fathom_u32_array table; /* a hash table of numbers in names, plus 1 */
};

void fathom_origins_deinit(struct fathom_origins *origins);

/* Forgets the names of the unit before. */
void fathom_origin_reset(struct fathom_worker *w);

/*
 * Returns the index in the worker's names of the names of @die, an entry of @unit; FATHOM_NO_NAMES
 * if out of memory. Entries that share an origin share an index.
 */
uint32_t fathom_origin_names(struct fathom_worker *w, struct fathom_debug *d,
			     const struct fathom_unit *unit, const struct fathom_die *die);

#define FATHOM_NO_NAMES UINT32_MAX

/* Reads the names of @die, and where it is declared, whatever the session's flags. */
void fathom_origin_declaration(struct fathom_worker *w, struct fathom_debug *d,
			       const struct fathom_unit *unit, const struct fathom_die *die,
			       struct fathom_names *ret);

#endif
