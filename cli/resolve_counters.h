/* SPDX-License-Identifier: MIT */
/*
 * The counts of fathom resolve, and its signals. A thread of its own waits for SIGUSR1, on which it
 * prints the counts, also while rows are answered or an engine does not read; and for SIGTERM,
 * after which no block is begun. A second SIGTERM ends the command at once.
 */
#ifndef FATHOM_CLI_RESOLVE_COUNTERS_H
#define FATHOM_CLI_RESOLVE_COUNTERS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <fathom/fathom.h>

#include "cli/resolve_input.h"
#include "cli/resolve_rows.h"

/* Reasons of the library and errors of rows. */
#define COUNTED_REASONS (FATHOM_REASON_NO_BASE + 1 + ROW_ERRORS)

struct row_counters {
	_Atomic uint64_t rows;
	_Atomic uint64_t answered; /* rows with a name or a line */
	_Atomic uint64_t blocks;
	_Atomic uint64_t bytes_out;
	_Atomic uint64_t read_ns;  /* making rows of bytes */
	_Atomic uint64_t write_ns; /* formatting answers, and waiting for who reads them */
	/* The others, by reason: of the library, then enum row_error. */
	_Atomic uint64_t unresolved[COUNTED_REASONS];
	const struct row_input *input;
	const struct fathom_resolver *resolver;
	const struct fathom *session;
	_Atomic bool is_stopped; /* by SIGTERM */
	int stop_fd;             /* readable when it is */
	pthread_t thread;
	bool has_thread;
};

static inline void row_count(_Atomic uint64_t *counter, uint64_t more)
{
	atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

/* Blocks the signals; to be called before any thread starts. Exits on failure. */
void row_counters_init(struct row_counters *c);
/* Starts the thread. The members that are pointers must be set. */
void row_counters_start(struct row_counters *c);
/* Ends the thread. */
void row_counters_stop(struct row_counters *c);

/* Prints the counts to standard error, as one line of JSON. */
void row_counters_print(const struct row_counters *c);

#endif
