/* SPDX-License-Identifier: MIT */
/* A core or snapshot as a space, with the map and memory of a dump. */
#ifndef FATHOM_USER_STORED_H
#define FATHOM_USER_STORED_H

#include "host/space/user/dump.h"
#include "host/space/user/space.h"

/* Opens @file, a core or a snapshot, and takes it over, also on failure. */
fathom_err fathom_stored_open(struct fathom_search_paths *paths, struct fathom_file *file,
			      struct fathom_target **ret, struct fathom_errinfo *reterr);

#endif
