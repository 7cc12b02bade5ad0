/* SPDX-License-Identifier: MIT */
/*
 * The units of one .debug_info: which of them may cover an address, which one holds an offset, and
 * a place for what is decoded of each.
 *
 * Everything is made when it is first asked for, outside any lock, and published by one
 * compare-and-swap; a thread that comes second frees its copy.
 */
#ifndef FATHOM_MODULE_UNITS_H
#define FATHOM_MODULE_UNITS_H

#include "host/base/memory.h"
#include "host/base/notes.h"
#include "host/file/object.h"
#include "safe/dwarf/unit.h"

struct fathom_file;
struct fathom_unit_data;

/* One unit. Nodes live as long as the module; what they point to can be evicted. */
struct fathom_unit_node {
	struct fathom_unit_node *next; /* in its bucket */
	struct fathom_unit_node *next_of_all;
	uint64_t off; /* in .debug_info */
	_Atomic(struct fathom_unit_data *) data;
	_Atomic uint32_t used; /* set by readers, cleared by the eviction's clock hand */
};

/* A range of code and the unit that claims it. */
struct fathom_unit_range {
	uint64_t low;
	uint64_t high;
	uint64_t unit_off;
	uint64_t max_high; /* of this and all before it: ranges may overlap */
};

struct fathom_unit_map {
	struct fathom_unit_range *ranges; /* sorted by low */
	size_t n;
};

/* The offsets of all units, in order. */
struct fathom_unit_list {
	uint64_t *offs;
	size_t n;
};

struct fathom_units {
	const struct fathom_dwarf *dwarf;
	const struct fathom_object *code; /* says where there is code at all */
	struct fathom_memory *memory;
	struct fathom_notes *notes;
	const struct fathom_file *file; /* that .debug_info may be mapped from */
	_Atomic(struct fathom_unit_node *) *buckets;
	size_t n_buckets;
	_Atomic(struct fathom_unit_node *) all;  /* the one that was made last */
	_Atomic(struct fathom_unit_map *) quick; /* from .debug_aranges or .gdb_index */
	_Atomic(struct fathom_unit_map *) full;  /* from the units themselves */
	_Atomic(struct fathom_unit_list *) list;
};

fathom_err fathom_units_init(struct fathom_units *u, const struct fathom_dwarf *dwarf,
			     const struct fathom_object *code, struct fathom_memory *m,
			     struct fathom_notes *notes, const struct fathom_file *file);
/* Frees all; @free_data is called for the data of each node. */
void fathom_units_deinit(struct fathom_units *u,
			 void (*free_data)(struct fathom_unit_data *data, void *arg), void *arg);

/* The node of the unit at @off, made if need be; NULL without memory. */
struct fathom_unit_node *fathom_units_node(struct fathom_units *u, uint64_t off);

/* The map from indexes, NULL when there are none (or no memory). */
const struct fathom_unit_map *fathom_units_quick(struct fathom_units *u);
/* The map from the roots of all units; needs @w to read them. NULL without memory. */
struct fathom_worker;
const struct fathom_unit_map *fathom_units_full(struct fathom_units *u, struct fathom_worker *w);

/* Candidates for one address: units rarely overlap, and never by much. */
#define FATHOM_UNIT_CANDIDATES 16

/*
 * The units of @map that claim @svma, in ascending order: the number of those put in @offs. Where
 * linkers keep one copy of a function that many units define, they let the other units point at it,
 * too; the copy that was kept is the first.
 */
size_t fathom_unit_candidates(const struct fathom_unit_map *map, uint64_t svma,
			      uint64_t offs[FATHOM_UNIT_CANDIDATES]);

/*
 * What fathom_unit_candidates() would say of the map from indexes, by one pass over them: making
 * the map costs more, when few addresses are asked for.
 */
size_t fathom_units_scan(struct fathom_units *u, uint64_t svma,
			 uint64_t offs[FATHOM_UNIT_CANDIDATES]);

/* The offset of the unit that holds the entry at @die_off; false when none does. */
bool fathom_units_containing(struct fathom_units *u, uint64_t die_off, uint64_t *ret_unit_off);

#endif
