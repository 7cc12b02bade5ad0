/* SPDX-License-Identifier: MIT */
/* Searches all units of a module's debug information on several threads. */
#ifndef FATHOM_FIND_UNIT_SEARCH_H
#define FATHOM_FIND_UNIT_SEARCH_H

#include "host/base/array.h"
#include "host/find/search.h"
#include "host/module/debug.h"
#include "host/module/worker.h"

/* A found place; strings are in the task's arena. */
struct fathom_find_place {
	uint64_t svma;
	uint64_t size;
	uint32_t query;
	uint32_t line;       /* 0: none */
	uint32_t tier;       /* dropped if its function has a place of a lower tier */
	const char *linkage; /* NULL: use the symbol at svma */
	const char *file;
	const char *caller; /* linkage or plain name; NULL: none */
};

struct fathom_find_places {
	FATHOM_ARRAY_OF(struct fathom_find_place);
};

/* A task of one thread: some units. */
struct fathom_find_task {
	struct fathom_find *f;
	struct fathom_debug *d;
	struct fathom_worker *w;
	uint32_t module;
	struct fathom_find_places places;
	struct fathom_arena arena;
};

/* Searches the unit at @off. Returns FATHOM_E_MEMORY, or another error, which becomes a note. */
typedef fathom_err fathom_find_unit_fn(struct fathom_find_task *t, uint64_t off,
				       struct fathom_errinfo *reterr);

/*
 * Calls @fn for each unit of every module that a query selects. @lines selects line queries,
 * otherwise the other kinds. Turns the places found into matches, sorted by address and ranked from
 * 1.
 */
fathom_err fathom_find_units(struct fathom_find *f, bool lines, fathom_find_unit_fn *fn);

/* Returns whether query @query applies to this task. */
bool fathom_find_task_asks(const struct fathom_find_task *t, uint32_t query);

bool fathom_find_task_add(struct fathom_find_task *t, const struct fathom_find_place *p);

#endif
