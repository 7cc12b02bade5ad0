/* SPDX-License-Identifier: MIT */
/*
 * Writes a gzip file (RFC 1952) piece by piece. Without zlib the bytes are written as they are,
 * which readers of pprof's format and pages tell apart.
 */
#ifndef FATHOM_EXCHANGE_GZIP_WRITER_H
#define FATHOM_EXCHANGE_GZIP_WRITER_H

#include <stdbool.h>
#include <stddef.h>

#include "fathom/profile_record.h"

struct fathom_gzip {
	fathom_profile_write_fn write;
	void *data;  /* of write */
	void *state; /* of the library; NULL: the bytes are written as they are */
	bool no_memory;
	bool has_failed; /* write has; errno says why */
};

/* Begins a file. @g is all zero but write and data. */
void fathom_gzip_begin(struct fathom_gzip *g);
/* Appends @n bytes, better many at once. */
void fathom_gzip_put(struct fathom_gzip *g, const void *bytes, size_t n);
/* Ends the file, unless something has failed, and frees the state. */
void fathom_gzip_end(struct fathom_gzip *g);

#endif
