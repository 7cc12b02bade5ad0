/* SPDX-License-Identifier: MIT */
/*
 * Sink of the events of fathom trace, of a run or of a file: prints, counts, or writes them; keeps
 * the last ones for that until they are asked for.
 */
#ifndef FATHOM_CLI_TRACE_SINK_H
#define FATHOM_CLI_TRACE_SINK_H

#include "cli/common.h"
#include "cli/out.h"

/* The arguments of an option that may be given several times. */
struct trace_words {
	const char **items;
	size_t n;
};

/* Options of the verb about events. */
struct trace_wants {
	struct fathom_trace_options options;
	struct trace_words only;
	struct trace_words under;
	struct trace_words except;
	struct trace_words threads; /* numbers or names; none: all */
	struct fathom_trace_at *at;
	size_t n_at;
	double seconds;  /* leave what is traced after them; 0: never */
	bool attaches;   /* to processes: signals that would end us have them left */
	uint32_t last;   /* keep so many; 0: all are told of at once */
	uint32_t format; /* enum fathom_trace_format; 0: lines, or counts */
	bool counts;
	bool has_syscalls;
	bool has_durations;
	struct trace_words inject;
	struct trace_words paths;
	struct fathom_trace_syscalls syscalls;
	const char *log; /* file to write to; NULL: a standard stream */
};

struct trace_sink;

void trace_words_add(struct trace_words *words, const char *word);
/* Parses "QUERY:ACTION". Exits with status 2 if it is not. */
void trace_wants_at(struct trace_wants *w, const char *word);

/* Completes the options: what is selected, and what takes the events. */
void trace_wants_options(struct trace_wants *w,
			 int (*events)(void *data, const struct fathom_trace_event *events,
				       size_t n),
			 void *data);

/* Makes a sink that writes to @fd, and the options whose events it takes. */
struct trace_sink *trace_sink_create(const struct common *c, struct trace_wants *wants, int fd);
/*
 * Writes what stands at the end, and frees it; @result may be NULL. If only the last events were
 * kept, writes them if @is_failure. Returns whether all could be written.
 */
bool trace_sink_finish(struct trace_sink *s, const struct fathom_trace_result *result,
		       bool is_failure);
/* Returns how many events were taken. */
uint64_t trace_sink_count(const struct trace_sink *s);
void trace_wants_deinit(struct trace_wants *w);

#endif
