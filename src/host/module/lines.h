/* SPDX-License-Identifier: MIT */
/* Runs the line program of a unit and keeps the rows of the code that is wanted. */
#ifndef FATHOM_MODULE_LINES_H
#define FATHOM_MODULE_LINES_H

#include "host/base/array.h"
#include "host/file/object.h"
#include "safe/dwarf/line.h"

struct fathom_worker;

/* Code to decode. The caller fills in the first part and sorts. */
struct fathom_want {
	uint64_t low; /* of the function, or of the code outside functions */
	uint64_t high;
	uint64_t from; /* the part of it to decode */
	uint64_t to;
	uint64_t die_off; /* the function, or FATHOM_NO_DIE for code outside functions */
	uint32_t slot;    /* number of its block in the unit */
	bool folded;      /* other functions of the unit have the same code */
	/* Filled in by fathom_decode() and fathom_lines_collect(). */
	uint64_t end;       /* rows from here on do not matter */
	uint64_t max_end;   /* highest end of this and all before it */
	uint32_t first_row; /* index in the worker's row_order */
	uint32_t n_rows;
	bool covered; /* one sequence holds the whole function: later ones do not count */
};

/* A sequence of a line program. */
struct fathom_line_sequence {
	uint64_t low;
	uint64_t high;
	uint32_t order; /* where two overlap, the one with the greater order counts */
};

#define FATHOM_NO_DIE UINT64_MAX

/* Sorts wants by from, as fathom_decode() and fathom_lines_collect() expect them. */
void fathom_lines_sort_wants(struct fathom_want *wants, size_t n);

/* A row of a want: it covers the addresses up to the next row, or to end. */
struct fathom_want_row {
	uint64_t address;
	uint64_t end;
	uint32_t line;
	uint32_t column;
	uint32_t discriminator;
	uint32_t file;
	uint32_t want;
	uint32_t sequence; /* index in the worker's sequences */
};

struct fathom_wants {
	FATHOM_ARRAY_OF(struct fathom_want);
};

struct fathom_line_entries {
	FATHOM_ARRAY_OF(struct fathom_line_entry);
};

struct fathom_line_sequences {
	FATHOM_ARRAY_OF(struct fathom_line_sequence);
};

struct fathom_want_rows {
	FATHOM_ARRAY_OF(struct fathom_want_row);
};

/* The line table that a worker read last. */
struct fathom_lines {
	struct fathom_line_reader reader;
	struct fathom_line_program program;
	uint32_t files_base; /* number of the first file and directory: 0 or 1 */
	struct fathom_line_entries files;
	bool defined; /* files has those that the program defines */
	struct fathom_line_entries dirs;
	struct fathom_line_sequences sequences; /* those with rows */
	bool sequences_ordered;                 /* their order is set */
	struct fathom_want_rows rows;
	struct fathom_want_rows row_order; /* the same, grouped by want */
};

void fathom_lines_deinit(struct fathom_lines *lines);

/*
 * Reads the line table at @line_off into @w: its directories and files to dirs and files; the rows
 * of the @n wants to row_order, those of each want sorted by address and without overlap.
 *
 * Sequences may overlap: linkers that fold equal functions (ICF) leave the sequence of each of
 * them, and some linkers leave what they dropped at address 0. At an address with several
 * sequences, one that holds the whole function wins; of those, the first that does not start at 0
 * or that is exactly as long as the function; else the first in the table. With FATHOM_GNU_PATHS,
 * as in GNU's BFD, the one that starts first wins; of those the longest; of those the last.
 *
 * If the program is damaged, keeps what came before the damage and returns the error.
 */
fathom_err fathom_lines_collect(struct fathom_worker *w, const struct fathom_unit *unit,
				const struct fathom_object *code, uint64_t line_off,
				struct fathom_want *wants, size_t n, struct fathom_errinfo *reterr);

/*
 * If the table that was read last has no file number @file, adds the files that the program itself
 * defines. Returns false if out of memory.
 */
bool fathom_lines_define(struct fathom_worker *w, uint32_t file);

/*
 * Appends the path of file number @file of the table that was read last (counted as the version
 * counts) to @pool as comp_dir/directory/name. Returns false if there is no such file or no memory.
 */
bool fathom_lines_path(struct fathom_worker *w, const struct fathom_unit *unit,
		       struct fathom_str comp_dir, uint32_t file, struct fathom_bytes_array *pool);

/* The text of a source file as the line table states it; both belong to the debug information. */
struct fathom_line_text {
	struct fathom_str embedded; /* empty: not embedded */
	const uint8_t *md5;         /* 16 bytes; NULL: not stated */
};

/*
 * Finds what the line table at @line_off states of the text of the file whose path
 * fathom_lines_path() composes as @path. Returns FATHOM_END if that is nothing, or nothing before
 * damage; FATHOM_E_MEMORY.
 */
fathom_err fathom_lines_source(struct fathom_worker *w, const struct fathom_unit *unit,
			       struct fathom_str comp_dir, uint64_t line_off,
			       struct fathom_str path, struct fathom_line_text *ret);

/* Does what fathom_lines_path() does, but writes @comp_dir even with FATHOM_RELATIVE_PATHS. */
bool fathom_lines_whole_path(struct fathom_worker *w, const struct fathom_unit *unit,
			     struct fathom_str comp_dir, uint32_t file,
			     struct fathom_bytes_array *pool);

#endif
