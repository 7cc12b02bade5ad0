/* SPDX-License-Identifier: MIT */
/* What ran and was stored as a space: its map and its memory are those of a dump. */
#ifndef FATHOM_TARGET_SPACE_STORED_H
#define FATHOM_TARGET_SPACE_STORED_H

#include "host/target/space/dump.h"
#include "host/target/space/space.h"

/* Opens @file, a core or a snapshot, which is taken over, also on failure. */
fathom_err fathom_stored_open(struct fathom_search_paths *paths, struct fathom_file *file,
			      struct fathom_target **ret, struct fathom_errinfo *reterr);

#endif
