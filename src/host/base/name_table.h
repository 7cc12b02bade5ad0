/* SPDX-License-Identifier: MIT */
/* Numbers names: equal names have the same number. All zero, the table is empty. */
#ifndef FATHOM_BASE_NAME_TABLE_H
#define FATHOM_BASE_NAME_TABLE_H

#include "host/base/array.h"
#include "host/base/key_map.h"

struct fathom_table_name {
	char *text;
	uint32_t next; /* number of another name with the same hash, or FATHOM_KEY_NEW */
};

struct fathom_name_table {
	FATHOM_ARRAY_OF(struct fathom_table_name); /* by number */
	struct fathom_key_map by_hash;
};

/* Returns the number of @text, of which it keeps a copy; FATHOM_KEY_NEW without memory. */
uint32_t fathom_name_table_add(struct fathom_name_table *t, const char *text);
void fathom_name_table_deinit(struct fathom_name_table *t);

#endif
