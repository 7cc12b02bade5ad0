/* SPDX-License-Identifier: MIT */
/* Members of JSON objects, as all verbs print them. */
#ifndef FATHOM_CLI_JSON_H
#define FATHOM_CLI_JSON_H

#include "cli/out.h"

/* "KEY": */
static inline void json_key(struct out *o, const char *key)
{
	out_char(o, '"');
	out_str(o, key);
	out_str(o, "\":");
}

/* The member's string, @n bytes; null without any. */
static inline void json_text(struct out *o, const char *key, const char *s, size_t n)
{
	json_key(o, key);
	if (n)
		out_json(o, s, n);
	else
		out_str(o, "null");
}

/* With a string; null for NULL and "". */
static inline void json_string(struct out *o, const char *key, const char *s)
{
	json_text(o, key, s, s ? strlen(s) : 0);
}

/* With an address, which is a string. */
void json_address(struct out *o, const char *key, uint64_t address);
/* With a number of which 0 means "none": null. */
void json_count(struct out *o, const char *key, uint64_t value);

#endif
