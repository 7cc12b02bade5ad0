/* SPDX-License-Identifier: MIT */
/*
 * The part of the session's memory budget that one call holds, for results whose size depends on
 * the target. It is held while the call runs. All threads of the call may use it.
 */
#ifndef FATHOM_MODULE_BUDGET_H
#define FATHOM_MODULE_BUDGET_H

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

bool fathom_budget_grow(struct fathom_budget *b, struct fathom_array *a, size_t item, size_t more);

/*
 * Reserves like fathom_array_reserve(), and counts the array. Returns false if it does not fit
 * memory or the budget.
 */
static inline bool fathom_budget_reserve(struct fathom_budget *b, struct fathom_array *a,
					 size_t item, size_t more)
{
	return (a->data && more <= a->cap - a->n) || fathom_budget_grow(b, a, item, more);
}

/* Frees an array that fathom_budget_reserve() has counted. */
void fathom_budget_release(struct fathom_budget *b, struct fathom_array *a, size_t item);

#endif
