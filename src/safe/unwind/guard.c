/* SPDX-License-Identifier: MIT */
#include "safe/unwind/guard.h"

#include "safe/base/limits.h"

bool fathom_walk_guard_is_cycle(struct fathom_walk_guard *g, const struct fathom_registers *r,
				uint64_t sp)
{
	if (r->sp <= sp && ++g->falls > FATHOM_MAX_STACK_FALLS)
		return true;
	if (g->power && r->pc == g->pc && r->sp == g->sp)
		return true;
	if (++g->length >= g->power) {
		g->power = g->power ? 2 * g->power : 1;
		g->length = 0;
		g->pc = r->pc;
		g->sp = r->sp;
	}
	return false;
}
