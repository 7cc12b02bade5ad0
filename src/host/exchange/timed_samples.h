/* SPDX-License-Identifier: MIT */
/*
 * Samples by thread and time, each with its stack: for formats that have a table for each thread.
 * The file has them by time.
 */
#ifndef FATHOM_EXCHANGE_TIMED_SAMPLES_H
#define FATHOM_EXCHANGE_TIMED_SAMPLES_H

#include "host/exchange/frame_stacks.h"

struct fathom_timed_sample {
	uint64_t ns;
	uint64_t weight;
	uint32_t stack;
	uint32_t thread; /* row, in the order of the profile's threads */
	uint32_t order;  /* in the file */
	uint32_t node;   /* of the profile */
	uint8_t part;    /* enum fathom_profile_part */
	bool is_asked;   /* of the time that is asked for; else a wait */
};

/* All zero, there are none. */
struct fathom_timed_samples {
	FATHOM_ARRAY_OF(struct fathom_timed_sample);
};

/*
 * Collects the samples of the profile of @stacks, whose rows have threads as groups, of which the
 * filters leave something; and, with @has_waits, waits of any time that is asked for.
 * FATHOM_E_LIMIT: they do not fit the session's budget; FATHOM_E_CHANGED, FATHOM_E_CANCELLED,
 * FATHOM_E_MEMORY.
 */
fathom_err fathom_timed_samples_init(struct fathom_timed_samples *all,
				     struct fathom_frame_stacks *stacks, bool has_waits,
				     struct fathom_errinfo *reterr);
void fathom_timed_samples_deinit(struct fathom_timed_samples *all);

/* Returns the end of the samples of the thread of sample @i. */
static inline size_t fathom_timed_samples_end(const struct fathom_timed_samples *all, size_t i)
{
	const uint32_t thread = all->items[i].thread;

	while (i < all->n && all->items[i].thread == thread)
		i++;
	return i;
}

#endif
