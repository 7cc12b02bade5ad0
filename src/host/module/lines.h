/* SPDX-License-Identifier: MIT */
/*
 * Running the line program of a unit for the ranges of code that are wanted, and only for those.
 */
#ifndef FATHOM_MODULE_LINES_H
#define FATHOM_MODULE_LINES_H

#include "host/base/array.h"
#include "host/file/object.h"
#include "safe/dwarf/line.h"

struct fathom_worker;

/* Code that is wanted. The caller fills in the first part and sorts. */
struct fathom_want {
	uint64_t low; /* of the function, or of the code outside functions */
	uint64_t high;
	uint64_t from; /* the part of it that is to be decoded */
	uint64_t to;
	uint64_t die_off; /* the function, or FATHOM_NO_DIE for code outside functions */
	uint32_t slot;    /* of the unit's blocks */
	bool folded;      /* other functions of the unit have the same code */
	/* filled in by fathom_decode() and fathom_lines_collect() */
	uint64_t end;       /* where rows stop to matter */
	uint64_t max_end;   /* of this and all before it */
	uint32_t first_row; /* in the worker's row_order */
	uint32_t n_rows;
	bool covered; /* one sequence holds all of the function: later ones do not count */
};

/* A sequence of a line program. */
struct fathom_line_sequence {
	uint64_t low;
	uint64_t high;
	uint32_t order; /* of two that overlap, the one with the greater order counts */
};

#define FATHOM_NO_DIE UINT64_MAX

/* Sorts by from, as fathom_decode() and fathom_lines_collect() take wants. */
void fathom_lines_sort_wants(struct fathom_want *wants, size_t n);

/* A row that holds in a want: from address to the next row's, or to end. */
struct fathom_want_row {
	uint64_t address;
	uint64_t end;
	uint32_t line;
	uint32_t column;
	uint32_t discriminator;
	uint32_t file;
	uint32_t want;
	uint32_t sequence; /* number in the worker's sequences */
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
	bool defined; /* those that the program defines are among them */
	struct fathom_line_entries dirs;
	struct fathom_line_sequences sequences; /* those with rows */
	bool sequences_ordered;                 /* their order is set */
	struct fathom_want_rows rows;
	struct fathom_want_rows row_order; /* the same, those of each want together */
};

void fathom_lines_deinit(struct fathom_lines *lines);

/*
 * Reads the line table at @line_off into @w: its directories and files to files and dirs, and the
 * rows of the @n wants, those of each sorted by address and without overlap, to row_order.
 *
 * Sequences may overlap: linkers that fold equal functions (ICF) leave the sequence of each of
 * them, and some leave what they dropped at address 0. Of several sequences at one address counts,
 * first, one that holds the whole function; of those, the first that does not start at 0 or that
 * is exactly as long as the function; else the first in the table. With FATHOM_GNU_PATHS, as in
 * GNU's BFD, the one that starts first counts; of those the longest; of those the last.
 *
 * When the program is damaged, what came before the damage is kept and the error returned.
 */
fathom_err fathom_lines_collect(struct fathom_worker *w, const struct fathom_unit *unit,
				const struct fathom_object *code, uint64_t line_off,
				struct fathom_want *wants, size_t n, struct fathom_errinfo *reterr);

/*
 * Adds the files that the program itself defines to those of the table that was read last, when
 * @file is a number that the table does not have. False without memory.
 */
bool fathom_lines_define(struct fathom_worker *w, uint32_t file);

/*
 * Writes the path of file number @file of the table that was read last (counted as the version
 * counts) to @pool as comp_dir/directory/name; false when there is no such file, or no memory.
 */
bool fathom_lines_path(struct fathom_worker *w, const struct fathom_unit *unit,
		       struct fathom_str comp_dir, uint32_t file, struct fathom_bytes_array *pool);

/*
 * Finds the text that the line table at @line_off has embedded for the file whose path
 * fathom_lines_path() composes as @path. FATHOM_END when there is none, also where the table is
 * damaged before it; FATHOM_E_MEMORY. The text belongs to the debug information.
 */
fathom_err fathom_lines_source(struct fathom_worker *w, const struct fathom_unit *unit,
			       struct fathom_str comp_dir, uint64_t line_off,
			       struct fathom_str path, struct fathom_str *ret);

/* Writes it with @comp_dir also where FATHOM_RELATIVE_PATHS leaves that out. */
bool fathom_lines_whole_path(struct fathom_worker *w, const struct fathom_unit *unit,
			     struct fathom_str comp_dir, uint32_t file,
			     struct fathom_bytes_array *pool);

#endif
