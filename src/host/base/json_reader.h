/* SPDX-License-Identifier: MIT */
/*
 * Reads JSON (RFC 8259) as it is asked for: the caller knows what comes, and skips the rest.
 * Nothing is built, and nothing recurses. What is skipped is not checked but for its brackets and
 * strings.
 *
 * An error sticks: every function then finds nothing more, so that loops end.
 */
#ifndef FATHOM_BASE_JSON_READER_H
#define FATHOM_BASE_JSON_READER_H

#include "host/base/array.h"
#include "safe/base/cursor.h"

struct fathom_json {
	struct fathom_cursor c;
	const char *wrong;              /* what is; NULL: nothing */
	struct fathom_bytes_array text; /* the last string */
	bool no_memory;
};

void fathom_json_init(struct fathom_json *j, struct fathom_bytes bytes);
void fathom_json_deinit(struct fathom_json *j);

/* Notes what is wrong, and ends the reading. */
void fathom_json_refuse(struct fathom_json *j, const char *what);

/* Enters an object or array if one is next, which begins with @open; else returns false. */
bool fathom_json_enter(struct fathom_json *j, char open);
/* Returns whether another member follows in what ends with @close; at its end leaves it. */
bool fathom_json_next(struct fathom_json *j, char close);

/* Reads the key of a member. It is valid until the next string. */
struct fathom_str fathom_json_key(struct fathom_json *j);
/* Reads a string, likewise; what is none is skipped, and empty. */
struct fathom_str fathom_json_string(struct fathom_json *j);
/* Returns whether a number is next. */
bool fathom_json_is_number(struct fathom_json *j);
/* Reads a number without its fraction, at most 2^62 either way; what is none is skipped, and 0. */
int64_t fathom_json_number(struct fathom_json *j);
/* Skips a value of any kind. */
void fathom_json_skip(struct fathom_json *j);

#endif
