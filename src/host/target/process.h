/* SPDX-License-Identifier: MIT */
/* A live process as a space: its map and its memory, through /proc (proc(5)). */
#ifndef FATHOM_TARGET_PROCESS_H
#define FATHOM_TARGET_PROCESS_H

#include "host/target/space.h"

/* Opens process @pid, which must be there and ours to look at; what goes wrong later is noted. */
fathom_err fathom_process_open(struct fathom *session, int pid, struct fathom_notes *notes,
			       struct fathom_space **ret, struct fathom_errinfo *reterr);

/* The path of the executable of @s, a process, as it was opened; "" when it cannot be known. */
const char *fathom_process_exe(const struct fathom_space *s);

#endif
