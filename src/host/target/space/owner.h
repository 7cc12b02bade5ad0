/* SPDX-License-Identifier: MIT */
/* Who owns the process of a space: user, number, and since when. */
#ifndef FATHOM_TARGET_SPACE_OWNER_H
#define FATHOM_TARGET_SPACE_OWNER_H

#include "host/jit/trusted_file.h"
#include "host/target/space/space.h"

/*
 * Reads who the process of @s is or was. Returns false if @s is neither a process nor a core that
 * says.
 */
bool fathom_space_read_owner(const struct fathom_space *s, struct fathom_jit_owner *ret);

#endif
