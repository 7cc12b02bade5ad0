/* SPDX-License-Identifier: MIT */
/*
 * The log of a trace as text, one line for each event:
 *
 *	FUN   tid   nanoseconds   stack symbol
 *	FUN 18900        95'034      96   &puts
 *	FUN 18900        97'002      16     &step ×10'000
 *
 * Digits are grouped by three; each call is indented by two columns for each call that it is
 * within, up to a limit.
 */
#ifndef FATHOM_TRACE_LOG_TEXT_H
#define FATHOM_TRACE_LOG_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FATHOM_LOG_BUFFER (UINT32_C(1) << 16)

/* Takes @size bytes; returns false if they cannot be written. */
typedef int (*fathom_log_write_fn)(void *data, const char *text, size_t size);

struct fathom_log_text {
	fathom_log_write_fn write;
	void *data;
	size_t n;
	bool has_failed; /* nothing is written any more */
	char buffer[FATHOM_LOG_BUFFER];
};

/* One line. */
struct fathom_log_line {
	char kind[4]; /* FUN, SIG, ... and a NUL */
	int32_t tid;
	uint32_t depth;   /* calls that it is within */
	uint64_t ns;      /* since the start */
	uint64_t stack;   /* bytes of stack in use */
	const char *what; /* what stands behind the indentation */
	size_t size;
	uint64_t count; /* how often it follows itself: at least 1 */
};

void fathom_log_text_init(struct fathom_log_text *t, fathom_log_write_fn write, void *data);

/* Appends the line that names the columns. */
void fathom_log_text_head(struct fathom_log_text *t);
void fathom_log_text_line(struct fathom_log_text *t, const struct fathom_log_line *line);

/* Writes what was appended. */
void fathom_log_text_flush(struct fathom_log_text *t);

#endif
