/* SPDX-License-Identifier: MIT */
/*
 * Files whose places were named stay open: each next batch of a file needs none of its tables anew.
 */
#ifndef FATHOM_CLI_TOP_TARGETS_H
#define FATHOM_CLI_TOP_TARGETS_H

#include <stdbool.h>

#include <fathom/profile.h>
#include <fathom/target.h>

/* So many files are open at once; of each one, the tables that were needed are in memory. */
#define TOP_TARGETS 48

struct top_target {
	struct fathom_target *target; /* NULL: none */
	char *path;
	uint64_t stored_ms; /* what its stored index has cost */
	uint64_t used;      /* the number of the batch that it was used for last */
};

struct top_targets {
	struct top_target items[TOP_TARGETS];
	uint64_t n_batches;
};

/*
 * Finds the names of @n places of @m, a file with a build-id, at its path below the sysroot of
 * @options. Returns false, without answers, if that cannot be: fathom_profile_name_module() looks
 * further.
 */
bool top_targets_ask(struct top_targets *k, struct fathom *session,
		     const struct fathom_profile_resolve_options *options,
		     const struct fathom_profile_module *m, const struct fathom_pc *pcs, size_t n,
		     struct fathom_answers **ret);

void top_targets_deinit(struct top_targets *k);

#endif
