/* SPDX-License-Identifier: MIT */
/*
 * The index cache on disk: finds the file of a module, maps it, and keeps the directory small.
 * cache_store.c writes the files, safe/index searches them.
 *
 * Only files of this user or of root that nobody else may write are read: an index says what is
 * printed about programs, so whoever can write it can lie.
 */
#ifndef FATHOM_MODULE_CACHE_READ_H
#define FATHOM_MODULE_CACHE_READ_H

#include "fathom/cache.h"
#include "host/module/module.h"
#include "safe/index/index.h"

/* Pages of an index that answers alone; whoever fills them in has them. */
struct fathom_cache_pages {
	void (*free)(struct fathom_cache_pages *p);
	/* Returns why a page could not be filled in; FATHOM_OK: all could. */
	fathom_err (*failure)(const struct fathom_cache_pages *p);
	bool has_file; /* the index was made of the file itself, whose offsets are known */
};

struct fathom_cache_file {
	struct fathom_index index;
	struct fathom_bytes map;
	bool allocated;                   /* made in memory, not mapped */
	struct fathom_cache_pages *pages; /* NULL: the index is of this host's cache */
	struct fathom_mapped *mapped;     /* in the session's table; NULL if not there */
	struct fathom_mapped_table *table;
};

/* Maps the stored index of @m if it still fits; else m->cache stays NULL. */
void fathom_cache_open(struct fathom_module *m);
void fathom_cache_close(struct fathom_module *m);

/*
 * Gets an index of all of @m: a stored one; one decoded and stored now; without a cache, one made
 * in memory. All its pages are verified: searching it writes nothing. The caller ends *@ret with
 * fathom_cache_file_close().
 */
fathom_err fathom_cache_take_all(struct fathom_module *m, struct fathom_cache_file **ret);
void fathom_cache_file_close(struct fathom_cache_file *c);

/* Returns the index to ask first; NULL if there is none or it proved damaged. */
const struct fathom_index *fathom_cache_index(const struct fathom_module *m);

/*
 * Returns why the index of @m, which answers alone, cannot be asked any more: nothing else knows
 * its answers. FATHOM_OK: it can, or @m has a file.
 */
fathom_err fathom_cache_failure(const struct fathom_module *m);

/* Returns the path of the index of @m in its session's directory, to be free()d; or NULL. */
char *fathom_cache_path(const struct fathom_module *m);

/* Does fathom_cache_store() for one module. */
fathom_err fathom_cache_store_module(struct fathom_module *m, bool all, uint32_t deadline_ms,
				     struct fathom_cache_result *ret_result,
				     struct fathom_errinfo *reterr);

/* Makes a complete index in memory; *@ret is the caller's to free(). */
fathom_err fathom_cache_make(struct fathom_module *m, struct fathom_bytes *ret);

/* Removes the least recently used files until the rest takes at most the limit. */
void fathom_cache_trim(const struct fathom *session);

#endif
