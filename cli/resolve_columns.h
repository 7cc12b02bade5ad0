/* SPDX-License-Identifier: MIT */
/* Rows of fathom resolve, as they are written, in the forms that they are read in. */
#ifndef FATHOM_CLI_RESOLVE_COLUMNS_H
#define FATHOM_CLI_RESOLVE_COLUMNS_H

#include <fathom/answer.h>

#include "cli/out.h"
#include "cli/resolve_rows.h"

/* Columns that an answer has; those before are the keys. */
enum row_column {
	COLUMN_FUNCTION = ROW_KEYS,
	COLUMN_LINKAGE_NAME,
	COLUMN_FILE,
	COLUMN_LINE,
	COLUMN_COLUMN,
	COLUMN_INLINES,
	COLUMN_FUNCTIONS,
	COLUMN_FILES,
	COLUMN_LINES,
	COLUMN_ADDRESS,
	COLUMN_PATH,
	COLUMN_SOURCE,
	COLUMN_REASON,
	COLUMNS
};

struct row_writer {
	enum row_form form;
	uint8_t columns[COLUMNS]; /* enum row_column or enum row_key */
	uint32_t n_columns;
	const char *separator; /* lists are texts with this between their items; NULL: arrays */
	bool has_nulls;        /* TSV has \N for what is not known */
	bool is_binary_input;  /* numbers of keys have no text */
	struct out *out;
	struct out item;   /* of a list, being made */
	struct out joined; /* a list, being made */
};

/*
 * Reads the names of columns, with commas between them. Exits if one is unknown or given twice.
 */
void row_writer_choose(struct row_writer *w, const char *names);

void row_writer_init(struct row_writer *w, struct out *out);
void row_writer_deinit(struct row_writer *w);

/* Writes the answer to @row; @reason: the word for why there is no name or line, or "". */
void row_write(struct row_writer *w, const struct row *row, const struct fathom_answer *a,
	       const char *reason);

#endif
