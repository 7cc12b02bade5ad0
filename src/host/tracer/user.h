/* SPDX-License-Identifier: MIT */
/* A user that a program is to run as. */
#ifndef FATHOM_TRACER_USER_H
#define FATHOM_TRACER_USER_H

#include <stdbool.h>
#include <sys/types.h>

#include "safe/base/error.h"

struct fathom_user {
	uid_t uid;
	gid_t gid;
	gid_t *groups;
	size_t n_groups;
};

/* Looks up @name; FATHOM_E_NOT_FOUND, FATHOM_E_MEMORY. */
fathom_err fathom_user_find(const char *name, struct fathom_user *ret,
			    struct fathom_errinfo *reterr);
void fathom_user_deinit(struct fathom_user *u);

/* Gives the calling process, which has one thread, the rights of @u; false if it may not. */
bool fathom_user_become(const struct fathom_user *u);

#endif
