/* SPDX-License-Identifier: MIT */
/*
 * Pieces of a remote store's indexes, on local disk: a file in the directory of the index cache
 * with the pieces that were read, at their places, and holes. Whether a piece is there is told by
 * its checksum, which the store's own table has: so writers need no lock, and what is damaged is
 * read again. The cache's limit holds for these files, too.
 */
#ifndef FATHOM_STORE_PIECE_CACHE_H
#define FATHOM_STORE_PIECE_CACHE_H

#include "host/base/context.h"
#include "host/store/container.h"

/* Returns the path of the file for pieces of @h, to be free()d; NULL: there is no cache. */
char *fathom_piece_cache_path(const struct fathom *session,
			      const struct fathom_container_header *h);

/* Reads up to @size bytes at @off; returns how many. */
size_t fathom_piece_cache_read(const char *path, uint64_t off, void *to, size_t size);

/* Writes @size bytes at @off, if that is possible. */
void fathom_piece_cache_write(const char *path, uint64_t off, const void *from, size_t size);

#endif
