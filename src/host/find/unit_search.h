/* SPDX-License-Identifier: MIT */
/* Looking through all units of a module's debug information, on several threads. */
#ifndef FATHOM_FIND_UNIT_SEARCH_H
#define FATHOM_FIND_UNIT_SEARCH_H

#include "host/base/array.h"
#include "host/find/search.h"
#include "host/module/debug.h"
#include "host/module/worker.h"

/* A place that was found: strings are of the task's arena. */
struct fathom_find_place {
	uint64_t svma;
	uint64_t size;
	uint32_t query;
	uint32_t line;       /* 0: none */
	uint32_t tier;       /* counts only where its function has none of a lower one */
	const char *linkage; /* NULL: it is what the symbol at svma is called */
	const char *file;
	const char *caller; /* as linked, or plain; NULL: none */
};

struct fathom_find_places {
	FATHOM_ARRAY_OF(struct fathom_find_place);
};

/* What one thread does at a time: some units. */
struct fathom_find_task {
	struct fathom_find *f;
	struct fathom_debug *d;
	struct fathom_worker *w;
	uint32_t module;
	struct fathom_find_places places;
	struct fathom_arena arena;
};

/* Looks through the unit at @off: FATHOM_E_MEMORY, or anything else, which is noted. */
typedef fathom_err fathom_find_unit_fn(struct fathom_find_task *t, uint64_t off,
				       struct fathom_errinfo *reterr);

/*
 * Calls @fn for each unit of the modules that some query of lines, or some other, as @lines says, asks; what it
 * has found becomes matches, sorted by address, with numbers from 1 as ranks.
 */
fathom_err fathom_find_units(struct fathom_find *f, bool lines, fathom_find_unit_fn *fn);

/* Whether query @i is to be looked for by this task. */
bool fathom_find_task_asks(const struct fathom_find_task *t, uint32_t query);

bool fathom_find_task_add(struct fathom_find_task *t, const struct fathom_find_place *p);

#endif
