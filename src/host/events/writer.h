/* SPDX-License-Identifier: MIT */
/*
 * Writers of events: one format each. What they write is collected and passed on in large pieces.
 */
#ifndef FATHOM_EVENTS_WRITER_H
#define FATHOM_EVENTS_WRITER_H

#include <string.h>

#include "fathom/trace.h"
#include "host/base/array.h"
#include "host/events/last_n.h"

/* A format. Functions that fail set no_memory of the writer. */
struct fathom_writer_format {
	/* Makes w->state and writes what stands at the beginning. */
	void (*begin)(struct fathom_trace_writer *w);
	void (*event)(struct fathom_trace_writer *w, const struct fathom_trace_event *e);
	/* Writes what stands at the end; @result may be NULL. */
	void (*end)(struct fathom_trace_writer *w, const struct fathom_trace_result *result);
	/* Frees w->state, which may be NULL. */
	void (*free)(struct fathom_trace_writer *w);
	/* System calls are events; else each is a call and a return of the function for it. */
	bool has_system_calls;
};

extern const struct fathom_writer_format fathom_writer_file;
/* Its functions are NULL in a build without nanopb. */
extern const struct fathom_writer_format fathom_writer_perfetto;
extern const struct fathom_writer_format fathom_writer_chrome;
extern const struct fathom_writer_format fathom_writer_collapsed;
extern const struct fathom_writer_format fathom_writer_dot;
extern const struct fathom_writer_format fathom_writer_tree;
extern const struct fathom_writer_format fathom_writer_tree_json;
extern const struct fathom_writer_format fathom_writer_counts;
extern const struct fathom_writer_format fathom_writer_counts_json;
extern const struct fathom_writer_format fathom_writer_text;
extern const struct fathom_writer_format fathom_writer_text_durations;
extern const struct fathom_writer_format fathom_writer_json_lines;
/* In host/page. */
extern const struct fathom_writer_format fathom_writer_page;

/* A function that events have named: a copy, as events may be gone when the end is written. */
struct fathom_writer_function {
	char *name; /* NULL: not named yet */
	char *module;
};

struct fathom_trace_writer {
	const struct fathom_writer_format *format;
	fathom_trace_write_fn write;
	void *data;
	void *state;         /* of the format */
	uint64_t lost;       /* events that the events written say were lost */
	bool is_same_thread; /* the event before, of those taken at once, is of the same thread */
	bool no_memory;
	bool has_failed;             /* to write */
	struct fathom_last_n last_n; /* cap 0: events are written at once */
	struct fathom_bytes_array out;
	struct {
		FATHOM_ARRAY_OF(struct fathom_writer_function); /* by number */
	} functions;
};

/*
 * Copies function @f unless it is known; returns whether it was not. w->functions has it then, at
 * its number, but without memory.
 */
bool fathom_writer_name(struct fathom_trace_writer *w, const struct fathom_trace_function *f);

/* Appends to what is written. */
void fathom_writer_bytes(struct fathom_trace_writer *w, const void *bytes, size_t n);

static inline void fathom_writer_str(struct fathom_trace_writer *w, const char *s)
{
	fathom_writer_bytes(w, s, strlen(s));
}

/* Passes on what was collected, if it is much: for long ends. */
void fathom_writer_pass_on(struct fathom_trace_writer *w);

void fathom_writer_dec(struct fathom_trace_writer *w, uint64_t value);
/* Appends a line of a table for people, or an object of JSON Lines, if events were lost. */
void fathom_writer_lost(struct fathom_trace_writer *w);
void fathom_writer_lost_json(struct fathom_trace_writer *w);
/*
 * Appends @s as a JSON string with quotes. Hidden characters (fathom_point_is_hidden()) become
 * escapes; bytes that are not UTF-8 become U+FFFD.
 */
void fathom_writer_json(struct fathom_trace_writer *w, const char *s);
void fathom_writer_json_bytes(struct fathom_trace_writer *w, const char *s, size_t n);

#endif
