/* SPDX-License-Identifier: MIT */
/*
 * What an index was made from: which index belongs to a module, and whether it really does.
 *
 * The key is the build-ids of the file and of its debug file, so that copies share an index. A
 * build-id tells of what was linked, not of what became of it since: stripped, or edited. So the
 * key has the headers of all sections too, and what the answers come from (symbols, debug
 * information, unwind tables) must have the checksum that it had for the index. A file that was
 * found to have it is recognised by device, inode, size and time of change from then on: without
 * that, 1 MB for each section would be read each time.
 *
 * Of sections that are not symbol tables and larger than 1 MB, only parts are compared.
 */
#ifndef FATHOM_MODULE_CACHE_KEY_H
#define FATHOM_MODULE_CACHE_KEY_H

#include "safe/index/index.h"

struct fathom_module;

/* Tells what the index of @m is made from; returns the number of sources. */
uint32_t fathom_cache_sources(const struct fathom_module *m,
			      struct fathom_index_source source[FATHOM_INDEX_SOURCES]);

/* The checksum of the content of @m's files with a build-id; 0 when there is none. Reads them. */
uint64_t fathom_cache_content(const struct fathom_module *m);

/* The checksum of what stat() says of @m's files; never 0. */
uint64_t fathom_cache_identity(const struct fathom_module *m);

#endif
