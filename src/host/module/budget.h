/* SPDX-License-Identifier: MIT */
/*
 * The part of the session's memory budget that one call holds, for results whose size depends on
 * the target. It is held while the call runs. All threads of the call may use it.
 */
#ifndef FATHOM_MODULE_BUDGET_H
#define FATHOM_MODULE_BUDGET_H

#include "host/base/array.h"
#include "host/base/context.h"

struct fathom_budget {
	struct fathom *session;
	_Atomic uint64_t counted; /* bytes */
	_Atomic bool is_over;     /* a request was refused for lack of budget */
};

/*
 * Counts @size more bytes, after dropping decoded units if need be. Returns false, and sets
 * is_over, if they do not fit.
 */
bool fathom_budget_take(struct fathom_budget *b, uint64_t size);

/* Counts @size bytes less. */
void fathom_budget_give(struct fathom_budget *b, uint64_t size);

/* As fathom_array_room(), and counts what the array takes. False if the budget has no room, too. */
#define fathom_budget_room(b, a, more)                          \
	(((a)->items && (size_t)(more) <= (a)->cap - (a)->n) || \
	 fathom_budget_enlarge((b), &(a)->items, &(a)->cap, (a)->n, (more), sizeof *(a)->items))

/* As fathom_array_push(), and counts. */
#define fathom_budget_push(b, a, ...) \
	(fathom_budget_room((b), (a), 1) && ((a)->items[(a)->n++] = (__VA_ARGS__), true))

/* Frees an array that was counted. */
#define fathom_budget_free(b, a) \
	(fathom_budget_give((b), (uint64_t)(a)->cap * sizeof *(a)->items), fathom_array_free(a))

bool fathom_budget_enlarge(struct fathom_budget *b, void *items, size_t *cap, size_t n, size_t more,
			   size_t size);

#endif
