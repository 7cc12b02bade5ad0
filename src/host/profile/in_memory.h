/* SPDX-License-Identifier: MIT */
/* A profile in memory: all that its file defines. Its samples stay in the file. */
#ifndef FATHOM_PROFILE_IN_MEMORY_H
#define FATHOM_PROFILE_IN_MEMORY_H

#include "fathom/profile.h"
#include "fathom/symbolize.h"
#include "host/base/array.h"
#include "host/base/context.h"
#include "host/file/file.h"

/* A name that the file has. */
struct fathom_read_symbol {
	struct fathom_frame frame;
	const struct fathom_read_symbol *symbol; /* the one that it is inlined into, or itself */
	uint32_t depth;                          /* functions that it is inlined into */
	uint8_t source;                          /* enum fathom_source */
};

struct fathom_profile {
	struct fathom *session;
	struct fathom_file *file;
	struct fathom_bytes records; /* the whole ones, up to END */
	struct fathom_profile_info info;
	const char **cgroups;
	struct fathom_profile_thread *threads;
	struct fathom_profile_module *modules;
	struct fathom_module_info *module_infos; /* of modules, for answers */
	struct fathom_read_symbol *symbols;
	struct fathom_profile_location *locations;
	struct fathom_answer *answers; /* of locations, from the file */
	struct fathom_profile_node *nodes;
	uint32_t *shown; /* of each node of the file: its stack (shown_frames.c); NULL: itself */
	size_t n_read_nodes; /* of the file, if shown is set */
	size_t n_cgroups;
	size_t n_threads;
	size_t n_modules;
	size_t n_symbols;
	size_t n_locations;
	size_t n_nodes;
	/* Of each sample of a wait that goes on, in their order: its waker, as in samples. */
	struct fathom_u32_array wakers;
	uint64_t counted; /* bytes of all of these, in the session's budget */
	struct fathom_arena texts;
	struct {
		FATHOM_ARRAY_OF(struct fathom_answers *);
	} batches; /* whose answers locations have */
};

/*
 * Reads @file, a profile, which it takes over: fathom_profile_open() once it is open. It runs
 * within a call (progress.h) of @session.
 */
fathom_err fathom_profile_read(struct fathom *session, struct fathom_file *file,
			       struct fathom_profile **ret, struct fathom_errinfo *reterr);

/* Returns whether samples of @part, enum fathom_profile_part, are waits. */
static inline bool fathom_profile_is_wait(uint8_t part)
{
	return part == FATHOM_PROFILE_WAITING || part == FATHOM_PROFILE_RUNNABLE;
}

#endif
