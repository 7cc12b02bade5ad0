/* SPDX-License-Identifier: MIT */
/* Numbers and names as text formats have them. */
#ifndef FATHOM_EVENTS_ESCAPE_H
#define FATHOM_EVENTS_ESCAPE_H

#include "host/events/writer.h"

/* How a format writes names. */
struct fathom_escape {
	const char *begin; /* of an escape: a backslash, as the format has it */
	/* Returns what replaces the first character of @s, of @n bytes; NULL: nothing does. */
	const char *(*instead)(const char *s, size_t n);
};

/*
 * Appends @name. Hidden characters (fathom_point_is_hidden()) and bytes that are not UTF-8 become
 * escapes of C: \n, \t, \xNN, \uNNNN, \UNNNNNNNN.
 */
void fathom_escape_name(struct fathom_trace_writer *w, const struct fathom_escape *how,
			const char *name);

/*
 * Makes @to the copy of @s, with its NUL, in which U+FFFD replaces what is not UTF-8. Returns false
 * without memory.
 */
bool fathom_escape_utf8(struct fathom_bytes_array *to, const char *s);

/* Appends @value with a ' between each three digits, right-aligned in @width columns. */
void fathom_escape_number(struct fathom_trace_writer *w, uint64_t value, size_t width);
void fathom_escape_spaces(struct fathom_trace_writer *w, size_t n);

#endif
