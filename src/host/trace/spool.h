/* SPDX-License-Identifier: MIT */
/*
 * Where records wait that the reader has no time for yet: a file without a name, which goes with
 * its reader. Rings so have room for their threads, which need not wait.
 *
 * Room is handed out in laps: as many records as a ring has. It is written and read, not mapped: a
 * full disk is an answer, not a signal.
 */
#ifndef FATHOM_TRACE_SPOOL_H
#define FATHOM_TRACE_SPOOL_H

#include <stdbool.h>

#include "host/base/array.h"
#include "safe/trace/ring.h"

struct fathom_spool {
	int fd;                         /* -1: there is none */
	uint64_t most;                  /* laps; 0: there is no room */
	uint32_t n;                     /* laps that the file has */
	struct fathom_u32_array unused; /* numbers of those that nobody has */
};

/*
 * Makes a spool in the folder @path for at most @size bytes, and at most a quarter of what is free
 * there; in memory (tmpfs) for at most 256 MiB. If no file can be made, or @path is NULL, it has no
 * room.
 */
void fathom_spool_init(struct fathom_spool *s, const char *path, uint64_t size);
void fathom_spool_deinit(struct fathom_spool *s);

/* Gets room for a lap, whose number is *@ret; false: there is none. */
bool fathom_spool_acquire(struct fathom_spool *s, uint32_t *ret);
/* Gives it back. */
void fathom_spool_release(struct fathom_spool *s, uint32_t lap);

/*
 * Writes @n records to lap @lap from index @i on; false: the disk is full, or fails, and there is
 * no room from now on.
 */
bool fathom_spool_write(struct fathom_spool *s, uint32_t lap, uint64_t i,
			const struct fathom_trace_record *records, uint64_t n);
/* Reads them; false: the disk fails. */
bool fathom_spool_read(const struct fathom_spool *s, uint32_t lap, uint64_t i,
		       struct fathom_trace_record *ret, uint64_t n);

#endif
