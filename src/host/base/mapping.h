/* SPDX-License-Identifier: MIT */
/* Fills the table of mapped files, which signal handlers search (safe/base/mapped.h). */
#ifndef FATHOM_BASE_MAPPING_H
#define FATHOM_BASE_MAPPING_H

#include "safe/base/mapped.h"

/* Adds the mapping of @size bytes at @start; NULL without memory. */
struct fathom_mapped *fathom_mapping_add(struct fathom_mapped_table *t, const void *start,
					 size_t size);

/* Removes @m, which may be NULL. To be called before it is unmapped. */
void fathom_mapping_remove(struct fathom_mapped_table *t, struct fathom_mapped *m);

/* Frees the table. Its files must be unmapped. */
void fathom_mapping_deinit(struct fathom_mapped_table *t);

#endif
