/* SPDX-License-Identifier: MIT */
/* The index cache on disk, from the inside. */
#ifndef FATHOM_INTERNAL_CACHE_H
#define FATHOM_INTERNAL_CACHE_H

#include "../safe/index/block.h"
#include "module.h"

/* Maps what an earlier run stored about @m, if it still fits; else m->cache stays NULL. */
void fathom_cache_open(struct fathom_module *m);
void fathom_cache_close(struct fathom_module *m);

#endif
