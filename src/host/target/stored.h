/* SPDX-License-Identifier: MIT */
/* What ran and was stored as a space: its map and its memory are those of a dump. */
#ifndef FATHOM_TARGET_STORED_H
#define FATHOM_TARGET_STORED_H

#include "host/target/dump.h"
#include "host/target/space.h"

/* Takes over @dump, also on failure. FATHOM_E_MEMORY. */
fathom_err fathom_stored_open(struct fathom *session, struct fathom_dump *dump,
			      struct fathom_notes *notes, struct fathom_space **ret,
			      struct fathom_errinfo *reterr);

/* The dump that @s was opened with. */
const struct fathom_dump *fathom_stored_dump(const struct fathom_space *s);

#endif
