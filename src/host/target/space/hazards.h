/* SPDX-License-Identifier: MIT */
/*
 * Hazards: memory of a process mapped from a file system that may not answer (reach.h). Touching a
 * page of it that is not resident may block for ever.
 */
#ifndef FATHOM_TARGET_SPACE_HAZARDS_H
#define FATHOM_TARGET_SPACE_HAZARDS_H

#include <pthread.h>
#include <stdatomic.h>

#include "host/base/array.h"
#include "host/base/memory.h"
#include "host/base/reach.h"
#include "host/file/maps.h"

/* A range of such memory. */
struct fathom_hazard {
	uint64_t start; /* avma; UINT64_MAX: no hazard */
	uint64_t end;
	uint64_t device;
};

struct fathom_hazard_array {
	FATHOM_ARRAY_OF(struct fathom_hazard);
};

struct fathom_hazards {
	struct fathom_reach *reach;      /* NULL: nothing is a hazard */
	pthread_mutex_t lock;            /* of list */
	struct fathom_hazard_array list; /* sorted; from the last map read */
	_Atomic bool any;
	_Atomic bool known; /* a map was read */
};

void fathom_hazards_init(struct fathom_hazards *h, struct fathom_reach *reach);
void fathom_hazards_deinit(struct fathom_hazards *h);

/* Returns whether touching the file or the memory of mapping @m may block. */
bool fathom_hazards_has(const struct fathom_hazards *h, const struct fathom_mapping *m);

/* Lists the hazards in @maps, a whole map; if memory runs out, the list stays unchanged. */
void fathom_hazards_note(struct fathom_hazards *h, const struct fathom_maps *maps);

/* Returns the first hazard that ends after @avma. */
struct fathom_hazard fathom_hazards_next(struct fathom_hazards *h, uint64_t avma);

#endif
