/* SPDX-License-Identifier: MIT */
/*
 * The line on standard error that says what a call that takes long is at: only on a terminal, and
 * after half a second. Whatever else is written removes it first. And Ctrl-C, which removes it,
 * too, and ends the waiting for debuginfod servers.
 */
#ifndef FATHOM_CLI_PROGRESS_LINE_H
#define FATHOM_CLI_PROGRESS_LINE_H

#include <fathom/fathom.h>

/*
 * Shows the line during calls of sessions with @options, if standard error is a terminal that can
 * remove it.
 */
void progress_show(struct fathom_options *options);

/*
 * Handles Ctrl-C for sessions with @options: the first one ends their waiting for debuginfod
 * servers, the second ends the run.
 */
void progress_catch_interrupt(struct fathom_options *options);

/* Removes the line, if there is one; the next comes half a second later. */
void progress_clear(void);

/* Does the same before something is written to standard output; if others read that, for good. */
void progress_clear_for_output(void);

#endif
