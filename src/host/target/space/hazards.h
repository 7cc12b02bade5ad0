/* SPDX-License-Identifier: MIT */
/*
 * Where the memory of a process is that of files on file systems that may not answer (reach.h): to
 * touch a page of it that is not in memory may take for ever.
 */
#ifndef FATHOM_TARGET_SPACE_HAZARDS_H
#define FATHOM_TARGET_SPACE_HAZARDS_H

#include <pthread.h>
#include <stdatomic.h>

#include "host/base/array.h"
#include "host/base/memory.h"
#include "host/base/reach.h"
#include "host/file/maps.h"

/* A stretch of such memory. */
struct fathom_hazard {
	uint64_t start; /* avma; UINT64_MAX: there is none */
	uint64_t end;
	uint64_t device;
};

struct fathom_hazard_array {
	FATHOM_ARRAY_OF(struct fathom_hazard);
};

struct fathom_hazards {
	struct fathom_reach *reach;      /* NULL: nothing is a hazard */
	pthread_mutex_t lock;            /* of list */
	struct fathom_hazard_array list; /* sorted, by the map that was read last */
	_Atomic bool any;
	_Atomic bool known; /* a map was read */
};

void fathom_hazards_init(struct fathom_hazards *h, struct fathom_reach *reach);
void fathom_hazards_deinit(struct fathom_hazards *h);

/* Whether touching the file or the memory of mapping @m may keep us waiting. */
bool fathom_hazards_has(const struct fathom_hazards *h, const struct fathom_mapping *m);

/* Notes where @maps, which is whole, has such files; without memory, the list stays as it is. */
void fathom_hazards_note(struct fathom_hazards *h, const struct fathom_maps *maps);

/* The first one that ends behind @avma. */
struct fathom_hazard fathom_hazards_next(struct fathom_hazards *h, uint64_t avma);

#endif
