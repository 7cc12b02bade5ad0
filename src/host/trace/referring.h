/* SPDX-License-Identifier: MIT */
/*
 * Finds whether a stopped thread comes back to memory of a tracer: because the handler of a signal
 * interrupts the runtime, or because the dynamic linker is just binding a function, and writes what
 * it finds into a word of ours.
 */
#ifndef FATHOM_TRACE_REFERRING_H
#define FATHOM_TRACE_REFERRING_H

#include "host/trace/program.h"

/* Places that a thread comes back to. */
enum {
	FATHOM_REFERS_CODE = 1,
	FATHOM_REFERS_WORDS = 2,
};

/* The places looked for. */
struct fathom_references {
	const struct fathom_traced *process;
	const struct fathom_runtime_maps *mapped;
	const struct fathom_maps *maps;
	/* Addresses of words, and what the dynamic linker adds a bias to; sorted. */
	struct {
		FATHOM_ARRAY_OF(struct fathom_reference_range {
			uint64_t low;
			uint64_t high;
		});
	} words;
	bool is_whole; /* there was memory for all of it */
};

/* Looks for what is on list @m, in @p, which has @maps. */
void fathom_references_init(struct fathom_references *r, const struct fathom_traced *p,
			    const struct fathom_runtime_maps *m, const struct fathom_maps *maps);
void fathom_references_deinit(struct fathom_references *r);

/* Returns FATHOM_REFERS_ bits of what stopped thread @tid comes back to. */
int fathom_references_of(const struct fathom_references *r, pid_t tid);

#endif
