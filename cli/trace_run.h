/* SPDX-License-Identifier: MIT */
/* fathom trace -- PROGRAM: runs a program and logs what it calls. */
#ifndef FATHOM_CLI_TRACE_RUN_H
#define FATHOM_CLI_TRACE_RUN_H

#include "cli/common.h"

/* The arguments of an option that may be given several times. */
struct trace_words {
	const char **items;
	size_t n;
};

struct trace_run {
	char **argv; /* PROGRAM and its arguments; NULL: none */
	struct fathom_trace_options options;
	struct trace_words only;
	struct trace_words under;
	struct trace_words except;
	struct trace_words threads; /* numbers or names; none: all */
	const char *log;            /* NULL: standard error */
	bool counts;
};

void trace_run_add(struct trace_words *words, const char *word);

/* Runs the program and returns the exit status, or ends as the program has. */
int trace_run(struct common *c, struct trace_run *run);

#endif
