/* SPDX-License-Identifier: MIT */
/*
 * Where records wait that the reader has no time for yet: a file without a name, which goes with
 * its reader. Rings so have room for their threads, which need not wait.
 *
 * Room is handed out in laps: as many records as a ring has. Its bytes are allocated before, so
 * that a full disk is an answer, not a signal.
 */
#ifndef FATHOM_TRACE_SPOOL_H
#define FATHOM_TRACE_SPOOL_H

#include <stdbool.h>

#include "host/base/array.h"
#include "safe/trace/ring.h"

struct fathom_spool {
	int fd;        /* -1: there is none */
	uint64_t most; /* laps */
	struct {
		FATHOM_ARRAY_OF(struct fathom_trace_record *);
	} laps; /* all that were made */
	struct {
		FATHOM_ARRAY_OF(struct fathom_trace_record *);
	} unused;
};

/*
 * Makes a spool in the folder @path for at most @size bytes, and a quarter of what is free there.
 * If no file can be made, or @path is NULL, it has no room.
 */
void fathom_spool_init(struct fathom_spool *s, const char *path, uint64_t size);
void fathom_spool_deinit(struct fathom_spool *s);

/* Returns room for a lap, which stays the spool's; NULL: there is none. */
struct fathom_trace_record *fathom_spool_acquire(struct fathom_spool *s);
/* Gives it back. */
void fathom_spool_release(struct fathom_spool *s, struct fathom_trace_record *lap);

#endif
