/* SPDX-License-Identifier: MIT */
/*
 * Where reports begin in the text of a log: the words that begin one, each found once. A report
 * also ends where nothing of it was seen for some distance.
 */
#ifndef FATHOM_FILTER_LOG_HEADS_H
#define FATHOM_FILTER_LOG_HEADS_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the log after which what a report has shown does not count any more. */
#define FATHOM_LOG_REPORT_SPAN ((size_t)64 << 10)

/* A walk over the heads in a text. */
struct fathom_log_heads {
	const char *next;    /* the first head that was not passed; end: there is none */
	const char *general; /* the next head of a program's report */
	const char *kernel;  /* the next head of the kernel's about itself; end if not wanted */
	const char *end;
};

/* Begins a walk over [@text, @end), of the kernel's heads, too, if @has_kernel. */
void fathom_log_heads_begin(struct fathom_log_heads *h, const char *text, const char *end,
			    bool has_kernel);

/* Passes all heads before @to: the next one is there or after it. */
void fathom_log_heads_pass(struct fathom_log_heads *h, const char *to);

#endif
