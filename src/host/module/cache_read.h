/* SPDX-License-Identifier: MIT */
/*
 * The index cache on disk: which file belongs to a module, mapping it, and keeping the directory
 * small. cache_store.c writes the files, safe/index searches them.
 *
 * Only files of this user or of root that nobody else may write are read: an index says what is
 * printed about programs, so whoever can write it can lie.
 */
#ifndef FATHOM_MODULE_CACHE_READ_H
#define FATHOM_MODULE_CACHE_READ_H

#include "fathom/cache.h"
#include "host/module/module.h"
#include "safe/index/index.h"

struct fathom_cache_file {
	struct fathom_index index;
	struct fathom_bytes map;
	bool allocated;               /* not mapped: made in memory */
	struct fathom_mapped *mapped; /* in the session's table; NULL: it is not there */
	struct fathom_mapped_table *table;
};

/* Maps what an earlier run stored about @m, if it still fits; else m->cache stays NULL. */
void fathom_cache_open(struct fathom_module *m);
void fathom_cache_close(struct fathom_module *m);

/*
 * An index of all of @m: what an earlier run stored, or what is decoded and stored now; without a
 * cache it is made in memory. *@ret is the caller's, to be ended with fathom_cache_file_close(),
 * and was looked at whole: searching it writes nothing.
 */
fathom_err fathom_cache_take_all(struct fathom_module *m, struct fathom_cache_file **ret);
void fathom_cache_file_close(struct fathom_cache_file *c);

/* The index to ask first: NULL when there is none, or it turned out to be damaged. */
const struct fathom_index *fathom_cache_index(const struct fathom_module *m);

/* The path of the index of @m in its session's directory, the caller's to free(); or NULL. */
char *fathom_cache_path(const struct fathom_module *m);

/* fathom_cache_store() for one module. */
fathom_err fathom_cache_store_module(struct fathom_module *m, bool all, uint32_t deadline_ms,
				     struct fathom_cache_result *ret_result,
				     struct fathom_errinfo *reterr);

/* The same index in memory, of all there is; *@ret is the caller's to free(). */
fathom_err fathom_cache_make(struct fathom_module *m, struct fathom_bytes *ret);

/* Removes the files used longest ago until those that are left take at most the limit. */
void fathom_cache_trim(const struct fathom *session);

#endif
