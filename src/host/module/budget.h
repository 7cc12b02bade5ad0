/* SPDX-License-Identifier: MIT */
/*
 * What one call holds of the session's memory budget: results of which there may be as much as the
 * target has. They count while the call runs. All threads of the call may use it.
 */
#ifndef FATHOM_MODULE_BUDGET_H
#define FATHOM_MODULE_BUDGET_H

#include "host/base/context.h"

struct fathom_budget {
	struct fathom *session;
	_Atomic uint64_t counted; /* bytes */
	_Atomic bool is_over;     /* something was refused, as the budget has no room for it */
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
 * Does what fathom_array_reserve() does, and counts the array. Returns false without memory, and
 * if the array does not fit the budget.
 */
static inline bool fathom_budget_reserve(struct fathom_budget *b, struct fathom_array *a,
					 size_t item, size_t more)
{
	return (a->data && more <= a->cap - a->n) || fathom_budget_grow(b, a, item, more);
}

/* Frees an array that was reserved so. */
void fathom_budget_release(struct fathom_budget *b, struct fathom_array *a, size_t item);

#endif
