/* SPDX-License-Identifier: MIT */
/*
 * Identifies the files that an index was made from: which index belongs to a module, and whether it
 * still fits.
 *
 * The key is the build-ids of the file and of its debug file, so that copies share an index. A
 * build-id identifies what was linked, but the file may have been stripped or edited since. So the
 * key also has the headers of all sections, and the content that answers come from (symbols, debug
 * information, unwind tables) must have the checksum that the index states. A file that passed this
 * once is recognised by device, inode, size and time of change; without that, up to 1 MB of each
 * section would be read each time.
 *
 * Of a section larger than 1 MB that is no symbol table, only parts are compared.
 */
#ifndef FATHOM_MODULE_CACHE_KEY_H
#define FATHOM_MODULE_CACHE_KEY_H

#include "safe/index/index.h"

struct fathom_module;

/* Fills in what the index of @m is made from; returns the number of sources. */
uint32_t fathom_cache_sources(const struct fathom_module *m,
			      struct fathom_index_source source[FATHOM_INDEX_SOURCES]);

/* Returns the checksum of the content of @m's files with a build-id, which it reads; or 0. */
uint64_t fathom_cache_content(const struct fathom_module *m);

/* Returns the checksum of what stat() says of @m's files; never 0. */
uint64_t fathom_cache_identity(const struct fathom_module *m);

#endif
