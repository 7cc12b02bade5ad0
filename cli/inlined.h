/* SPDX-License-Identifier: MIT */
/* Functions without a symbol, of which the debug information has inlined copies. */
#ifndef CLI_INLINED_H
#define CLI_INLINED_H

#include <stdbool.h>

#include <fathom/find.h>

#include "cli/out.h"

/* Finds the inlined copies of the @n functions @names; NULL if it cannot. */
struct fathom_matches *inlined_find(struct fathom_target *target, uint32_t flags,
				    const char *const *names, size_t n);

/* If @name, which no symbol has, is inlined, writes ,"inlined_copies":[...] with all copies. */
void inlined_json(struct out *o, struct fathom_target *target, const char *name);

/* If @name, which no symbol has, is inlined, says where; else returns false. */
bool inlined_complain(struct fathom_target *target, const char *name);

#endif
