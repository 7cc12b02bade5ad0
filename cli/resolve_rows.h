/* SPDX-License-Identifier: MIT */
/*
 * Rows of fathom resolve, as they are read: tab-separated values with the escapes of ClickHouse
 * (TabSeparated), one JSON object for each line (JSONEachRow), or the binary form of RowBinary:
 * little-endian numbers, and texts after their length as ULEB128.
 *
 * Nothing is copied: texts are decoded in place, and point into what was read.
 */
#ifndef FATHOM_CLI_RESOLVE_ROWS_H
#define FATHOM_CLI_RESOLVE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <fathom/resolve.h>

/* Bytes of the longest row. Of a longer one nothing is kept. */
#define ROW_MAX ((size_t)1 << 20)

enum row_form { ROW_TSV, ROW_JSON, ROW_BINARY };

/* Columns of the input, the keys. */
enum row_key { ROW_BUILD_ID, ROW_OFFSET, ROW_MODULE, ROW_KIND, ROW_COUNT, ROW_KEYS };

/* Errors of a row. */
enum row_error { ROW_GOOD, ROW_BAD, ROW_BAD_BUILD_ID, ROW_BAD_OFFSET, ROW_LONG, ROW_ERRORS };

/* The value of a key, as it was read. */
struct row_text {
	const char *data; /* NULL: none */
	uint32_t size;
	bool is_quoted; /* it was a string in JSON */
};

struct row {
	struct row_text keys[ROW_KEYS]; /* in the binary form, the texts only */
	uint64_t offset;
	uint64_t count;
	uint8_t kind;  /* enum fathom_pc_kind */
	uint8_t error; /* enum row_error */
};

struct row_reader {
	enum row_form form;
	uint8_t columns[ROW_KEYS]; /* enum row_key, in the order of the input */
	uint32_t n_columns;
	uint8_t default_kind; /* enum fathom_pc_kind */
	bool is_skipping;     /* within a line that is too long */
	bool is_lost;         /* the binary form makes no sense: nothing more can be read */
};

/* The result of reading. */
struct row_step {
	size_t size;  /* bytes that were read; 0: they are no whole row yet */
	bool has_row; /* a row was read */
};

/*
 * Reads the next row of the @size bytes at @text, which it changes. @is_end: no more bytes follow.
 */
struct row_step row_read(struct row_reader *r, char *text, size_t size, bool is_end,
			 struct row *ret);

/* Reads the build-id of @row, which is good, into @bytes; returns its size. */
uint32_t row_build_id(const struct row *row, uint8_t bytes[FATHOM_BUILD_ID_MAX]);

/* Returns the word for an error, "" for none. */
const char *row_error_name(enum row_error error);

/* Returns the key called @name, of @size bytes; ROW_KEYS if there is none. */
enum row_key row_key_find(const char *name, size_t size);
const char *row_key_name(enum row_key key);

#endif
