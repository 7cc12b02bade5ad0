/* SPDX-License-Identifier: MIT */
/* The owner of a space's process: user, pid and start time. */
#ifndef FATHOM_USER_OWNER_H
#define FATHOM_USER_OWNER_H

#include "host/jit/trusted_file.h"
#include "host/space/user/space.h"

/*
 * Reads the owner of the process of @s. Returns false if @s is neither a process nor a core that
 * names one.
 */
bool fathom_space_read_owner(const struct fathom_space *s, struct fathom_jit_owner *ret);

#endif
