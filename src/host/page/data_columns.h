/* SPDX-License-Identifier: MIT */
/*
 * Columns of a page's data: their number of values, then the values, all LEB128 without sign. A
 * column of differences has the zigzag of each value less the one before it. Texts are numbered;
 * their column has the size in bytes before the bytes of each.
 */
#ifndef FATHOM_PAGE_DATA_COLUMNS_H
#define FATHOM_PAGE_DATA_COLUMNS_H

#include "host/base/array.h"
#include "host/base/name_table.h"

/* All zero, it is empty. */
struct fathom_page_column {
	struct fathom_bytes_array bytes;
	uint64_t n;    /* values */
	uint64_t last; /* of differences: the value before */
	bool no_memory;
};

void fathom_page_put(struct fathom_page_column *c, uint64_t value);
/* Appends @value to a column of differences. */
void fathom_page_put_delta(struct fathom_page_column *c, uint64_t value);
void fathom_page_column_deinit(struct fathom_page_column *c);

/* All zero, there are none. */
struct fathom_page_texts {
	struct fathom_name_table names; /* in UTF-8 */
	struct fathom_bytes_array clean;
	size_t bytes; /* of all of them */
	bool no_memory;
};

/* Returns the number of @s, in UTF-8, or 0, that of "", if it is NULL. */
uint32_t fathom_page_text(struct fathom_page_texts *t, const char *s);
/* Appends all texts, in the order of their numbers. */
void fathom_page_put_texts(struct fathom_page_column *c, const struct fathom_page_texts *t);
void fathom_page_texts_deinit(struct fathom_page_texts *t);

#endif
