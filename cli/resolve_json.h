/* SPDX-License-Identifier: MIT */
/*
 * One object of JSON (RFC 8259) in one line, read in place: its members are strings, numbers and
 * words; the values of others are passed over. The library's own reader copies each string, which a
 * million rows a second have no time for.
 */
#ifndef FATHOM_CLI_RESOLVE_JSON_H
#define FATHOM_CLI_RESOLVE_JSON_H

#include "cli/resolve_rows.h"

struct row_json {
	char *at;
	char *end;
	bool is_wrong;
};

/* Enters the object; returns false if none is there. */
bool row_json_begin(struct row_json *j);

/*
 * Reads the next member; returns false at the object's end, or if the text is wrong. The value of
 * null, an object or an array is NULL.
 */
bool row_json_next(struct row_json *j, struct row_text *ret_name, struct row_text *ret_value);

/* Returns whether only blanks follow. */
bool row_json_is_end(struct row_json *j);

#endif
