/* SPDX-License-Identifier: MIT */
/* The inside of a target. */
#ifndef FATHOM_INTERNAL_TARGET_H
#define FATHOM_INTERNAL_TARGET_H

#include "fathom/target.h"
#include "../kernel/kernel.h"
#include "../module/module.h"
#include "../space/space.h"

struct fathom_target {
	_Atomic uint32_t references;
	struct fathom_notes notes;
	struct fathom_module *module; /* of a file; else NULL, and there is one of these */
	struct fathom_space *space;
	struct fathom_kernel *kernel;
	enum fathom_target_kind kind;
	int pid; /* of a process, or 0 */
};

#endif
