/* SPDX-License-Identifier: MIT */
/* Where an address is: which module holds it, at which bias; and modules where they are loaded. */
#ifndef FATHOM_MODULE_PLACE_H
#define FATHOM_MODULE_PLACE_H

#include "fathom/answer.h"
#include "safe/base/bytes.h"

struct fathom_module;

/* What stands in the answers as a module; it lives as long as the view of the target. */
struct fathom_holder {
	struct fathom_module *module; /* NULL: it has no file */
	const char *name;             /* as the target calls it */
	struct fathom_bytes build_id;
	const struct fathom_module_info
		*info; /* as the answers of a batch have it; NULL: not yet */
};

/* Where an address is. */
struct fathom_place {
	struct fathom_holder *holder; /* has a module; NULL: no module holds the address */
	uint64_t bias;                /* address - bias is as stated in the module */
	uint64_t key; /* the same for all addresses of this module and bias that lie together */
	enum fathom_reason reason; /* why no module holds the address */
	bool is_code; /* it may be code: what no module names, something else may name */
};

/* A module where it is loaded. */
struct fathom_module_at {
	struct fathom_module *module;
	const char *name; /* as the target calls it */
	uint64_t bias;
	uint64_t start;           /* avma of its first mapping */
	const uint64_t *sections; /* of a kernel module: avma of each, 0: not loaded; else NULL */
};

/* Takes one module; returns whether to go on. What it is given holds for the time of the call. */
typedef bool (*fathom_module_fn)(const struct fathom_module_at *m, void *data);

#endif
