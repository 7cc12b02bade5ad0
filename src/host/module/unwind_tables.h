/* SPDX-License-Identifier: MIT */
/*
 * The unwind tables of a module: the CIEs and FDEs of .eh_frame and .debug_frame of its files. A
 * relocatable file may have several sections of each.
 *
 * An address is first looked up in the sorted table of .eh_frame_hdr, which costs no preparation.
 * The FDE that it leads to must cover the address. If it does not, or if there is no such table, a
 * walk over the sections makes an index of all FDEs, once. A CIE is read when its first FDE is, and
 * kept until the module is closed. Nothing here takes a lock: indexes and CIEs are published by one
 * compare-and-swap.
 *
 * Where FDEs overlap, .eh_frame comes before .debug_frame. In each of them, of the FDEs that cover
 * the address the one that starts last holds; of those that start there too, the one that stands
 * last in the file. If .eh_frame_hdr leads to another one that covers the address, that one holds.
 *
 * FDEs of .debug_frame that start where the module has no code are left out: linkers keep those of
 * functions that they dropped. Not handled: FDEs after the first 4 GB of a section are in no
 * index.
 */
#ifndef FATHOM_MODULE_UNWIND_TABLES_H
#define FATHOM_MODULE_UNWIND_TABLES_H

#include "host/base/array.h"
#include "host/symbol/bounds.h"
#include "safe/dwarf/cfi.h"

/* One section of CIEs and FDEs. */
struct fathom_unwind_section {
	struct fathom_object *object;
	uint32_t number; /* of the section, which is loaded when needed; 0: cfi has its bytes */
	struct fathom_cfi cfi;
};

struct fathom_fde_index;
struct fathom_cie_table;

struct fathom_unwind_tables {
	struct fathom_bounds bounds; /* first; of the bounding sections only */
	struct fathom_memory *memory;
	struct fathom_unwind_section *sections;
	uint32_t n_sections;
	uint32_t n_bounding;        /* sections that bound functions; they come first */
	uint64_t bytes;             /* of all sections as they stand in their files */
	struct fathom_bytes header; /* .eh_frame_hdr of the first section, or empty */
	uint64_t header_svma;
	_Atomic(struct fathom_fde_index *) index[2]; /* of the bounding sections; of the others */
	_Atomic(struct fathom_cie_table *) cies;     /* those read so far */
};

/*
 * Finds the sections of @main and of @debug, another file or NULL. @u, all zero, must stay where it
 * is. Returns false without memory.
 */
bool fathom_unwind_tables_init(struct fathom_unwind_tables *u, struct fathom_object *main,
			       struct fathom_object *debug);
void fathom_unwind_tables_deinit(struct fathom_unwind_tables *u);

/*
 * Finds the FDE of the code at @svma. Its CIE lives as long as the module. Returns FATHOM_END if
 * there is none, FATHOM_E_LIMIT if its CIE would not fit the memory budget or if more than
 * FATHOM_MAX_FDE_OVERLAP FDEs must be looked at.
 */
fathom_err fathom_unwind_tables_find(struct fathom_unwind_tables *u, uint64_t svma,
				     struct fathom_fde *ret);

/*
 * Calls @fn for each FDE in address order, those of overlapping ones that
 * fathom_unwind_tables_find() would not prefer included, until it returns false. @rest: those of
 * the sections that do not bound functions. FATHOM_E_MEMORY; damaged FDEs are left out.
 */
fathom_err fathom_unwind_tables_walk(struct fathom_unwind_tables *u, bool rest,
				     bool (*fn)(const struct fathom_fde *fde, void *data),
				     void *data);

/* Returns section @i, loaded; an empty one if it cannot be. */
struct fathom_cfi fathom_unwind_tables_section(const struct fathom_unwind_tables *u, uint32_t i);

#endif
