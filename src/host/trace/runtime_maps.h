/* SPDX-License-Identifier: MIT */
/*
 * The mappings that a tracer has made in a process, listed in the process's private memory: a
 * tracer that attaches after one was killed finds the list by the shared memory, whose name is in
 * the map, and unmaps its mappings.
 */
#ifndef FATHOM_TRACE_RUNTIME_MAPS_H
#define FATHOM_TRACE_RUNTIME_MAPS_H

#include "host/base/array.h"
#include "host/file/maps.h"
#include "host/tracer/tracee.h"
#include "safe/trace/ring.h"

struct fathom_runtime_maps {
	uint64_t avma; /* of the list in the process; 0: it has none */
	uint64_t head_size;
	bool is_free; /* nothing leads to it, and no thread comes back to it */
	struct fathom_trace_mappings list;
};

struct fathom_runtime_lists {
	FATHOM_ARRAY_OF(struct fathom_runtime_maps);
};

/* Returns whether @m is memory that a traced process and its reader share. */
bool fathom_runtime_maps_is_shared(const struct fathom_mapping *m);

/* Reads the lists of tracers in a process with @maps; without memory, fewer. */
void fathom_runtime_maps_find(const struct fathom_tracee *t, const struct fathom_maps *maps,
			      struct fathom_runtime_lists *ret);

/* Adds a mapping to @m; room is enough for all that a tracer makes. */
void fathom_runtime_maps_add(struct fathom_runtime_maps *m, uint64_t start, uint64_t size,
			     enum fathom_trace_mapped kind);
/* Takes the mapping at @start from the list. */
void fathom_runtime_maps_remove(struct fathom_runtime_maps *m, uint64_t start);
/* Writes the list into the process. */
bool fathom_runtime_maps_write(const struct fathom_tracee *t, const struct fathom_runtime_maps *m);

/* Returns whether @avma is in a mapping on the list. */
bool fathom_runtime_maps_has(const struct fathom_runtime_maps *m, uint64_t avma);
/* Returns whether @avma is in code on the list. */
bool fathom_runtime_maps_has_code(const struct fathom_runtime_maps *m, uint64_t avma);

/*
 * Makes stopped thread @tid unmap what is on the list, but for the stack that it makes these calls
 * on, then the list and the shared memory. While
 * @keeps_words, words stay, and the list, which a page of the shared memory leads to.
 */
void fathom_runtime_maps_unmap(const struct fathom_tracee *t, pid_t tid,
			       struct fathom_runtime_maps *m, bool keeps_words);

#endif
