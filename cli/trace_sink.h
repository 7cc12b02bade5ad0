/* SPDX-License-Identifier: MIT */
/*
 * Sink of the events of fathom trace, of a run or of a file: prints, counts, or writes them; keeps
 * the last ones for that until they are asked for.
 */
#ifndef FATHOM_CLI_TRACE_SINK_H
#define FATHOM_CLI_TRACE_SINK_H

#include "cli/common.h"
#include "cli/out.h"

/* An option of a trace, as it was given. */
struct trace_given {
	const struct fathom_trace_option *option;
	const char *argument; /* NULL: none */
};

/* Options of the verb about events. */
struct trace_wants {
	struct fathom_trace_options options;
	struct fathom_trace_syscalls syscalls;
	struct fathom_trace_settings settings; /* which point to both */
	struct trace_given *given;             /* n_given of them, in their order */
	size_t n_given;
	double seconds; /* leave what is traced after them; 0: never */
	bool attaches;  /* to processes: signals that would end us have them left */
};

struct trace_sink;

void trace_wants_init(struct trace_wants *w);
void trace_wants_deinit(struct trace_wants *w);

/* Makes a sink that writes to @fd, and the options whose events it takes. */
struct trace_sink *trace_sink_create(struct trace_wants *wants, int fd);
/*
 * Writes what stands at the end, and frees it; @result may be NULL. If only the last events were
 * kept, writes them if @is_failure. Returns whether all could be written.
 */
bool trace_sink_finish(struct trace_sink *s, const struct fathom_trace_result *result,
		       bool is_failure);
/* Returns how many events were taken. */
uint64_t trace_sink_count(const struct trace_sink *s);

#endif
