/* SPDX-License-Identifier: MIT */
/*
 * Hazards: memory of a process mapped from a file system that may not answer (fs_probe.h). Touching
 * a page of it that is not resident may block for ever.
 */
#ifndef FATHOM_USER_HUNG_MAPPINGS_H
#define FATHOM_USER_HUNG_MAPPINGS_H

#include <pthread.h>
#include <stdatomic.h>

#include "host/base/array.h"
#include "host/base/memory.h"
#include "host/base/fs_probe.h"
#include "host/file/maps.h"

/* A range of such memory. */
struct fathom_hung_mapping {
	uint64_t start; /* avma; UINT64_MAX: no hazard */
	uint64_t end;
	uint64_t device;
};

struct fathom_hung_mapping_array {
	FATHOM_ARRAY_OF(struct fathom_hung_mapping);
};

struct fathom_hung_mappings {
	struct fathom_fs_probe *reach;         /* NULL: nothing is a hazard */
	pthread_mutex_t lock;                  /* of list */
	struct fathom_hung_mapping_array list; /* sorted; from the last map read */
	_Atomic bool any;
	_Atomic bool known; /* a map was read */
};

void fathom_hung_mappings_init(struct fathom_hung_mappings *h, struct fathom_fs_probe *reach);
void fathom_hung_mappings_deinit(struct fathom_hung_mappings *h);

/* Returns whether touching the file or the memory of mapping @m may block. */
bool fathom_hung_mappings_has(const struct fathom_hung_mappings *h, const struct fathom_mapping *m);

/* Lists the hazards in @maps, a whole map; if memory runs out, the list stays unchanged. */
void fathom_hung_mappings_note(struct fathom_hung_mappings *h, const struct fathom_maps *maps);

/* Returns the first hazard that ends after @avma. */
struct fathom_hung_mapping fathom_hung_mappings_next(struct fathom_hung_mappings *h, uint64_t avma);

#endif
