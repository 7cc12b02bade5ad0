/* SPDX-License-Identifier: MIT */
/*
 * The C++ exception of the crashing thread, in words, as `fathom stack` prints it of cores
 * (host/death).
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_CRASH_EXCEPTION_LINE_H
#define FATHOM_CRASH_EXCEPTION_LINE_H

#include "safe/crash/sink.h"
#include "safe/crash/state.h"

/*
 * Adds the line about the exception, if the thread has one. The first @n frames of @c are its
 * stack, to the program's entry if @is_whole; @buffer has room for an answer.
 */
void fathom_crash_add_exception(struct fathom_report_sink *s, const struct fathom_crash *c,
				size_t n, bool is_whole, void *buffer, size_t size);

/* Adds text of @size bytes, whose line breaks are shown as symbols. */
void fathom_crash_add_text(struct fathom_report_sink *s, const char *text, uint32_t size);

#endif
