/* SPDX-License-Identifier: MIT */
/* fathom jit-check -- PROGRAM: runs a program and checks the code that it makes. */
#ifndef FATHOM_CLI_JIT_CHECK_RUN_H
#define FATHOM_CLI_JIT_CHECK_RUN_H

#include "cli/common.h"

struct jit_check_run {
	char **argv; /* PROGRAM and its arguments; NULL: none */
	struct fathom_jit_check_options options;
	const char *log;  /* NULL: standard error */
	bool needs_rules; /* code that nothing describes is a break, too */
};

/* Runs the program and returns the exit status, or ends as the program has. */
int jit_check_run(struct common *c, struct jit_check_run *run);

#endif
