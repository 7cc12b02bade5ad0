/* SPDX-License-Identifier: MIT */
/* The inside of a target. */
#ifndef FATHOM_TARGET_TARGET_H
#define FATHOM_TARGET_TARGET_H

#include "fathom/symbolize.h"
#include "host/module/module.h"
#include "host/target/kernel/kernel.h"
#include "host/target/space.h"

struct fathom_target {
	_Atomic uint32_t references;
	struct fathom_notes notes;
	struct fathom_module *module; /* of a file; else NULL, and there is one of these */
	struct fathom_space *space;
	struct fathom_kernel *kernel;
	enum fathom_target_kind kind;
	int pid; /* of a process, or 0 */
};

/* The session that @t was opened in. */
static inline struct fathom *fathom_target_session(const struct fathom_target *t)
{
	return t->kernel  ? t->kernel->place.session
	       : t->space ? t->space->session
			  : t->module->session;
}

struct fathom_batch_options;

/* Answers @n addresses as fathom_symbolize() does. */
fathom_err fathom_target_answer(struct fathom_target *target,
				const struct fathom_batch_options *options,
				const uint64_t *addresses, size_t n,
				struct fathom_answers **ret_answers, struct fathom_errinfo *reterr);

/*
 * Returns @err, how a call on @target has ended; but FATHOM_E_CHANGED, which @reterr tells more of,
 * if a file that @target has open was cut (mapped.h): what was made of it is of no use, and what
 * has failed has failed for that.
 */
fathom_err fathom_target_end_call(const struct fathom_target *target, fathom_err err,
				  struct fathom_errinfo *reterr);

#endif
