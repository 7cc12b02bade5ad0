/* SPDX-License-Identifier: MIT */
/* A child of this process that waits to be let go before it becomes a program. */
#ifndef FATHOM_TRACER_HELD_CHILD_H
#define FATHOM_TRACER_HELD_CHILD_H

#include <stdint.h>
#include <sys/types.h>

#include "host/tracer/user.h"
#include "safe/base/error.h"

struct sock_fprog;

struct fathom_held_child {
	pid_t pid;
	int go;     /* where it is let go; -1: it was */
	int report; /* errno can be read from it, as an int, when exec() has failed; else it ends */
};

/* How a child differs from this process. */
struct fathom_held_child_options {
	const struct sock_fprog *filter; /* of its system calls; NULL: none */
	const struct fathom_user *user;  /* whom it runs as; NULL: as this process */
	const int32_t *streams; /* its descriptors 0, 1 and 2; NULL: those of this process */
	/*
	 * SIGPIPE and SIGXFSZ do what they do by default, even if they are ignored here, and no
	 * signal is blocked.
	 */
	bool restores_signals;
};

/* Forks a child that is to become @argv, found along PATH. FATHOM_E_OS. */
fathom_err fathom_held_child_start(struct fathom_held_child *c, char *const *argv,
				   const struct fathom_held_child_options *options,
				   struct fathom_errinfo *reterr);

/* Lets it go. FATHOM_E_OS. */
fathom_err fathom_held_child_go(struct fathom_held_child *c, struct fathom_errinfo *reterr);

/* Closes what was opened for it. One that was not let go ends. */
void fathom_held_child_close(struct fathom_held_child *c);

#endif
