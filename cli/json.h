/* SPDX-License-Identifier: MIT */
/* Members of JSON objects, as all verbs print them. */
#ifndef FATHOM_CLI_JSON_H
#define FATHOM_CLI_JSON_H

#include "cli/out.h"

/* Writes "KEY": */
static inline void json_key(struct out *o, const char *key)
{
	out_char(o, '"');
	out_str(o, key);
	out_str(o, "\":");
}

/* Writes a member with a string of @n bytes, null if @n is 0. */
static inline void json_text(struct out *o, const char *key, const char *s, size_t n)
{
	json_key(o, key);
	if (n)
		out_json(o, s, n);
	else
		out_str(o, "null");
}

/* Writes a member with a string, null for NULL and "". */
static inline void json_string(struct out *o, const char *key, const char *s)
{
	json_text(o, key, s, s ? strlen(s) : 0);
}

/* Write a member after others: a comma before it, then as the functions without "member" do. */
static inline void json_member_string(struct out *o, const char *key, const char *s)
{
	out_char(o, ',');
	json_string(o, key, s);
}
void json_member_number(struct out *o, const char *key, uint64_t value);
void json_member_count(struct out *o, const char *key, uint64_t value);
void json_member_truth(struct out *o, const char *key, bool is_true);

/* Writes a member with an address, as a string. */
void json_address(struct out *o, const char *key, uint64_t address);
/* Writes a member with an address if it @is_known, else null. */
void json_address_or_null(struct out *o, const char *key, bool is_known, uint64_t address);
/* Writes a member with a number; 0 means "none" and becomes null. */
void json_count(struct out *o, const char *key, uint64_t value);

#endif
