/* SPDX-License-Identifier: MIT */
/* The calling process as a target. */
#ifndef FATHOM_SPACE_OWN_PROCESS_H
#define FATHOM_SPACE_OWN_PROCESS_H

#include "host/file/maps.h"
#include "host/space/target.h"

/*
 * Opens this process. If /proc/self/maps is unreadable, @make_map makes a map for @page-byte pages;
 * it may be NULL.
 */
fathom_err fathom_own_process_open(struct fathom_search_paths *paths,
				   fathom_err (*make_map)(uint64_t page, struct fathom_maps *ret),
				   struct fathom_target **ret, struct fathom_errinfo *reterr);

#endif
