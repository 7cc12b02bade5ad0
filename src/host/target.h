/* SPDX-License-Identifier: MIT */
/* The inside of a target. */
#ifndef FATHOM_INTERNAL_TARGET_H
#define FATHOM_INTERNAL_TARGET_H

#include "fathom/target.h"
#include "module.h"

struct fathom_target {
	_Atomic uint32_t references;
	struct fathom_notes notes;
	struct fathom_module *module;   /* of a file, else NULL */
	struct fathom_process *process; /* NULL when it is none */
	int pid;                        /* 0 when it is none */
};

#endif
