/* SPDX-License-Identifier: MIT */
/* The modules of two profiles that are one in a comparison. */
#ifndef FATHOM_PROFILE_COMPARED_MODULES_H
#define FATHOM_PROFILE_COMPARED_MODULES_H

#include "host/base/name_table.h"
#include "host/profile/in_memory.h"

struct fathom_compared_module {
	uint32_t match;   /* number that modules which match have in common, and no others */
	uint8_t sides;    /* bits 1 << side of the profiles that have it */
	const char *name; /* the last part of its path or, if others have that, too, all of it */
};

/* All zero, there are none. */
struct fathom_compared_modules {
	struct fathom_name_table paths;
	FATHOM_ARRAY_OF(struct fathom_compared_module); /* by number of path */
};

/*
 * Matches the modules of two profiles: those with the same path; of other folders, those with the
 * same last part of it; of other versions, as libfoo.so.1.2 and libfoo.so.1.3, those with the same
 * name up to ".so". Of the two latter, each profile must have one only: modules of one profile are
 * never one. False without memory.
 */
bool fathom_compared_modules_init(struct fathom_compared_modules *m,
				  const struct fathom_profile *const profiles[2]);

/* Returns the module @path of either profile; NULL if it is none of theirs. */
const struct fathom_compared_module *fathom_compared_modules_find(struct fathom_compared_modules *m,
								  const char *path);

void fathom_compared_modules_deinit(struct fathom_compared_modules *m);

#endif
