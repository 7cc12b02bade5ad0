/* SPDX-License-Identifier: MIT */
/* Reads snapshots; snapshot_format.h has the format. */
#ifndef FATHOM_USER_SNAPSHOT_READ_H
#define FATHOM_USER_SNAPSHOT_READ_H

#include "host/space/user/dump.h"

/* Returns whether the bytes start like a snapshot of any version. */
bool fathom_snapshot_file_is(struct fathom_bytes bytes);

/*
 * Reads the snapshot @file and takes it over, also on failure. FATHOM_E_CORRUPT,
 * FATHOM_E_UNSUPPORTED for an unknown version, FATHOM_E_LIMIT, FATHOM_E_MEMORY.
 */
fathom_err fathom_snapshot_file_read(struct fathom_file *file, struct fathom_dump *ret,
				     struct fathom_errinfo *reterr);

#endif
