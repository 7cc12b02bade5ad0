/* SPDX-License-Identifier: MIT */
/*
 * Names for the places of samples: each once, by a thread of its own, all new places of a module at
 * a time. So nothing else waits for files.
 */
#ifndef FATHOM_CLI_TOP_NAMES_H
#define FATHOM_CLI_TOP_NAMES_H

#include <pthread.h>

#include "cli/top_samples.h"
#include "cli/top_targets.h"

/* Places that are named at once. */
struct top_batch {
	uint32_t *numbers;
	struct fathom_pc *pcs;
	size_t n;
	struct fathom_profile_module module; /* with copies of its texts */
	int32_t pid;
	uint64_t generation;
	struct fathom_answers *answers; /* NULL: there are none */
	uint64_t cost;                  /* processor time that they have taken, ns */
};

struct top_names {
	struct fathom *session;
	struct fathom_profile_resolve_options options;
	struct top_targets targets; /* of the thread that finds names */
	uint64_t passed; /* when places were looked for last, monotonic; of the owner of samples */

	pthread_mutex_t lock; /* of all that follows */
	pthread_cond_t changed;
	struct top_batch batch;
	enum { TOP_BATCH_NONE, TOP_BATCH_ASKED, TOP_BATCH_ANSWERED } state;
	bool is_over;
};

void top_names_init(struct top_names *t);
void top_names_deinit(struct top_names *t);

/* Takes the names that were found, and passes new places on. Called by the owner of @s. */
void top_names_exchange(struct top_names *t, struct top_samples *s);

/* Finds names until top_names_end(): the start of a thread. @data: struct top_names. */
void *top_names_run(void *data);
void top_names_end(struct top_names *t);

#endif
