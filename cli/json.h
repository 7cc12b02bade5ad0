/* SPDX-License-Identifier: MIT */
/* Members of JSON objects, as all verbs print them. */
#ifndef FATHOM_JSON_H
#define FATHOM_JSON_H

#include "out.h"

/* "KEY": */
void json_key(struct out *o, const char *key);
/* With a string; null for NULL and "". */
void json_string(struct out *o, const char *key, const char *s);
/* With an address, which is a string. */
void json_address(struct out *o, const char *key, uint64_t address);
/* With a number of which 0 means "none": null. */
void json_count(struct out *o, const char *key, uint64_t value);

#endif
