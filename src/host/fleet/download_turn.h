/* SPDX-License-Identifier: MIT */
/* One download on this host at a time, by a lock that ends with its process. */
#ifndef FATHOM_FLEET_DOWNLOAD_TURN_H
#define FATHOM_FLEET_DOWNLOAD_TURN_H

#include "host/base/context.h"

struct fathom_download_turn {
	int fd;          /* holds the lock; -1: there is none, as without a cache directory */
	bool has_waited; /* another process has downloaded something meanwhile */
};

/*
 * Waits until no other process of this user downloads, but no longer than the servers may take. The
 * caller ends it. FATHOM_E_CANCELLED.
 */
fathom_err fathom_download_turn_begin(struct fathom *session, struct fathom_download_turn *ret,
				      struct fathom_errinfo *reterr);
void fathom_download_turn_end(struct fathom_download_turn *t);

#endif
