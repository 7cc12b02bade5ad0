/* SPDX-License-Identifier: MIT */
/* The tree of a report by names: nodes of equal names up to the root are one path. */
#ifndef FATHOM_EXCHANGE_NAME_PATHS_H
#define FATHOM_EXCHANGE_NAME_PATHS_H

#include "host/exchange/frame_stacks.h"

struct fathom_name_path {
	uint64_t weight; /* of stacks that end here */
	uint32_t parent; /* index, which is lower; of path 0, the root: itself */
	uint32_t name;   /* number; functions of the kernel end in _[k] */
	uint32_t depth;  /* of path 0: 0 */
	const struct fathom_report_row *row; /* one of those that have the name; of path 0: NULL */
};

/* All zero but profile and deepest, there are none. */
struct fathom_name_paths {
	const struct fathom_profile *profile;
	uint32_t deepest; /* depth; what is deeper counts for its caller */
	FATHOM_ARRAY_OF(struct fathom_name_path);
	struct fathom_name_table names;
	uint32_t *order; /* of all but path 0: by parent, then by name */
	uint32_t *first; /* by path: where in order those below it begin, n - 1: there are none */
	size_t n_kernel; /* names that are paths of the kernel's modules */
	struct fathom_key_map by_place;    /* paths by parent and name */
	struct fathom_key_map by_row;      /* names by address of the row */
	struct fathom_bytes_array spelled; /* the name under construction */
	bool no_memory;
};

/* Makes the paths of @r, which has to stay; sets no_memory if it cannot. */
void fathom_name_paths_make(struct fathom_name_paths *p, const struct fathom_report *r);
void fathom_name_paths_deinit(struct fathom_name_paths *p);

/* Returns the text of the name of path @i, which is not the root. */
static inline const char *fathom_name_path_text(const struct fathom_name_paths *p, size_t i)
{
	return p->names.items[p->items[i].name].text;
}

#endif
