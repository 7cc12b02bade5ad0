/* SPDX-License-Identifier: MIT */
/*
 * Where a report is written to: a descriptor, by write(2) in pieces that pipes take at once. What
 * cannot be written there goes to standard error, and what that does not take within a bound is
 * dropped: a report never waits for ever. SIGPIPE is blocked meanwhile, and that of a pipe whose
 * reader is gone is taken back: the program goes on as it would have without a report.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_CRASH_SINK_H
#define FATHOM_CRASH_SINK_H

#include "safe/crash/state.h"

#define FATHOM_CRASH_PIECE 4096 /* PIPE_BUF: poll() says whether a pipe takes so much */

struct fathom_report_sink {
	const struct fathom_self *self; /* names addresses */
	int fd;                         /* -1: all is dropped */
	bool is_opened;                 /* fd is the sink's own */
	bool has_sigpipe;               /* one was pending before: the program's own */
	unsigned waits;                 /* left */
	size_t n;                       /* bytes in text */
	char text[FATHOM_CRASH_PIECE];
};

/* Opens the file of the report of @c; if there is none, uses the descriptor. */
void fathom_sink_open(struct fathom_report_sink *s, const struct fathom_crash *c);

/* Adds text, as fathom_self_format() writes it. What is longer than a piece is cut. */
void fathom_sink_add(struct fathom_report_sink *s, const char *format, ...);

/* Writes what was added so far. */
void fathom_sink_flush(struct fathom_report_sink *s);

/* Copies the file @path, at most @limit bytes of it; returns 0 or a negative errno. */
long fathom_sink_copy(struct fathom_report_sink *s, const char *path, size_t limit);

/* Writes what is left and closes the file. */
void fathom_sink_close(struct fathom_report_sink *s);

#endif
