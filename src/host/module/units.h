/* SPDX-License-Identifier: MIT */
/*
 * The units of one .debug_info: finds those that may cover an address and the one that holds an
 * offset, and has a place for what is decoded of each.
 *
 * Everything is made on first use, outside any lock, and published by one compare-and-swap; a
 * thread that comes second frees its copy.
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
	uint64_t max_high; /* highest high of this and all before it: ranges may overlap */
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
	const struct fathom_object *code; /* tells where there is code */
	struct fathom_memory *memory;
	struct fathom_notes *notes;
	const struct fathom_file *file; /* the one that .debug_info may be mapped from */
	_Atomic(struct fathom_unit_node *) *buckets;
	size_t n_buckets;
	_Atomic(struct fathom_unit_node *) all;  /* the newest node */
	_Atomic(struct fathom_unit_map *) quick; /* from .debug_aranges or .gdb_index */
	_Atomic(struct fathom_unit_map *) full;  /* from the units themselves */
	_Atomic(struct fathom_unit_list *) list;
};

fathom_err fathom_units_init(struct fathom_units *u, const struct fathom_dwarf *dwarf,
			     const struct fathom_object *code, struct fathom_memory *m,
			     struct fathom_notes *notes, const struct fathom_file *file);
/* Frees everything; calls @free_data for the data of each node. */
void fathom_units_deinit(struct fathom_units *u,
			 void (*free_data)(struct fathom_unit_data *data, void *arg), void *arg);

/* Returns the node of the unit at @off, made if needed; NULL if out of memory. */
struct fathom_unit_node *fathom_units_node(struct fathom_units *u, uint64_t off);

/* Returns the map from indexes; NULL if there are none, or if out of memory. */
const struct fathom_unit_map *fathom_units_quick(struct fathom_units *u);
/* Returns the map from the roots of all units, which it reads with @w; NULL if out of memory. */
struct fathom_worker;
const struct fathom_unit_map *fathom_units_full(struct fathom_units *u, struct fathom_worker *w);

/* The most candidates for one address: units rarely overlap, and never by much. */
#define FATHOM_UNIT_CANDIDATES 16

/*
 * Finds the units of @map that claim @svma, in ascending order; returns how many are in @offs.
 * Linkers that keep one copy of a function that many units define let the other units point at it,
 * too; the first unit is that of the copy that was kept.
 */
size_t fathom_unit_candidates(const struct fathom_unit_map *map, uint64_t svma,
			      uint64_t offs[FATHOM_UNIT_CANDIDATES]);

/*
 * Finds what fathom_unit_candidates() finds in the map from indexes, by one pass over them: for few
 * addresses that costs less than making the map.
 */
size_t fathom_units_scan(struct fathom_units *u, uint64_t svma,
			 uint64_t offs[FATHOM_UNIT_CANDIDATES]);

/* Finds the offset of the unit that holds the entry at @die_off; returns false if none does. */
bool fathom_units_containing(struct fathom_units *u, uint64_t die_off, uint64_t *ret_unit_off);

#endif
