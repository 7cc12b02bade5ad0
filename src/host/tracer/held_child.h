/* SPDX-License-Identifier: MIT */
/* A child of this process that waits to be let go before it becomes a program. */
#ifndef FATHOM_TRACER_HELD_CHILD_H
#define FATHOM_TRACER_HELD_CHILD_H

#include <sys/types.h>

#include "host/tracer/user.h"
#include "safe/base/error.h"

struct sock_fprog;

struct fathom_held_child {
	pid_t pid;
	int go;     /* where it is let go; -1: it was */
	int report; /* errno can be read from it, as an int, when exec() has failed; else it ends */
};

/*
 * Forks a child that is to become @argv, found along PATH. @filter is one of its system calls, or
 * NULL. @user is whom it runs as, or NULL. @restores_signals: SIGPIPE and SIGXFSZ do what they do
 * by default, even if they are ignored here. FATHOM_E_OS.
 */
fathom_err fathom_held_child_start(struct fathom_held_child *c, char *const *argv,
				   const struct sock_fprog *filter, const struct fathom_user *user,
				   bool restores_signals, struct fathom_errinfo *reterr);

/* Lets it go. FATHOM_E_OS. */
fathom_err fathom_held_child_go(struct fathom_held_child *c, struct fathom_errinfo *reterr);

/* Closes what was opened for it. One that was not let go ends. */
void fathom_held_child_close(struct fathom_held_child *c);

#endif
