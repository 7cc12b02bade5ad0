/* SPDX-License-Identifier: MIT */
/* Reading snapshots, whose format is in snapshot_format.h. */
#ifndef FATHOM_TARGET_SPACE_SNAPSHOT_READ_H
#define FATHOM_TARGET_SPACE_SNAPSHOT_READ_H

#include "host/target/space/dump.h"

/* Whether the bytes start as a snapshot of any version does. */
bool fathom_snapshot_file_is(struct fathom_bytes bytes);

/*
 * Reads the snapshot @file, which is taken over, also on failure. FATHOM_E_CORRUPT,
 * FATHOM_E_UNSUPPORTED for a version that is not known, FATHOM_E_LIMIT, FATHOM_E_MEMORY.
 */
fathom_err fathom_snapshot_file_read(struct fathom_file *file, struct fathom_dump *ret,
				     struct fathom_errinfo *reterr);

#endif
