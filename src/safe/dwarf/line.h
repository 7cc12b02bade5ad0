/* SPDX-License-Identifier: MIT */
/*
 * .debug_line, versions 2 to 5 (DWARF 5, 6.2): the header with its directories and files, and the
 * program, run row by row.
 *
 * Not handled: the experimental two-level tables, whose version is unknown here and refused.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_DWARF_LINE_H
#define FATHOM_DWARF_LINE_H

#include "safe/dwarf/unit.h"

/* A header that was read and checked, and where its tables and its program are. */
struct fathom_line_program {
	const struct fathom_dwarf *dwarf;
	struct fathom_cursor tables;  /* directories and files */
	struct fathom_cursor opcodes; /* the program */
	const uint8_t *section;
	const uint8_t *operand_counts; /* of the standard opcodes, from opcode 1 */
	struct fathom_encoding encoding;
	uint8_t min_instruction_length;
	uint8_t max_operations;
	uint8_t line_range;
	uint8_t opcode_base;
	int8_t line_base;
	bool default_is_stmt;
};

/* Reads the header at @off; @address_size is that of the unit, for versions that do not state it.
 */
fathom_err fathom_line_program_read(const struct fathom_dwarf *dwarf, uint64_t off,
				    uint8_t address_size, struct fathom_line_program *ret,
				    struct fathom_errinfo *reterr);

/* A directory or file; its name is looked up only when somebody asks for it. */
struct fathom_line_entry {
	struct fathom_attr name;
	uint64_t directory; /* of a file: an index in the directories as the version counts */
	bool is_file;
};

/*
 * A walk over the directories and then the files of a header. Indices count from 0 in version 5,
 * where entry 0 is the unit's own directory or file; from 1 in older versions.
 */
struct fathom_line_tables {
	const struct fathom_line_program *program;
	struct fathom_cursor c;
	uint64_t left; /* entries of the current table, version 5 */
	uint32_t n_formats;
	uint8_t phase;
	uint16_t types[64];
	uint16_t forms[64];
	struct fathom_attr source; /* embedded text of the last entry; form 0 without one */
};

void fathom_line_tables_init(struct fathom_line_tables *t, const struct fathom_line_program *p);

/* The next entry: FATHOM_OK, FATHOM_END, or an error. */
fathom_err fathom_line_tables_next(struct fathom_line_tables *t, struct fathom_line_entry *ret,
				   struct fathom_errinfo *reterr);

/* The name of @entry; @unit resolves indexed strings. data is NULL when the name is damaged. */
struct fathom_str fathom_line_entry_name(const struct fathom_line_program *p,
					 const struct fathom_unit *unit,
					 const struct fathom_line_entry *entry);

/* The same for the embedded text of the entry that @t has returned last; empty without one. */
struct fathom_str fathom_line_tables_source(const struct fathom_line_tables *t,
					    const struct fathom_unit *unit);

/* One row: what holds from address up to the next row of its sequence. */
struct fathom_line_row {
	uint64_t address; /* svma */
	uint32_t file;
	uint32_t line;
	uint32_t column;
	uint32_t discriminator;
	uint8_t op_index;
	bool is_stmt;
	bool end_sequence; /* the first address behind the sequence; nothing else in it counts */
};

/* What the special opcodes do, worked out once per distinct header. */
struct fathom_line_specials {
	uint8_t advance[256]; /* operations */
	uint32_t line[256];   /* added to the line, modulo 2^32 */
	uint8_t opcode_base;
	uint8_t line_range;
	int8_t line_base;
};

struct fathom_line_reader {
	const struct fathom_line_program *program;
	struct fathom_cursor c;
	struct fathom_line_row row; /* the registers */
	/*
	 * Of rows up to this address only the last is handed out, as long as they are in order; set
	 * by the caller between calls, and 0 again when the sequence ends.
	 */
	uint64_t dull;
	struct fathom_line_specials specials;
};

/* @r may hold an earlier reader's state, whose tables are used again, or zeros. */
void fathom_line_reader_init(struct fathom_line_reader *r, const struct fathom_line_program *p);

/*
 * Runs the program until @cap rows are in @rows or it ends; returns their number, 0 at the end.
 * When the program is damaged it ends early, and fathom_line_reader_error() says so.
 */
size_t fathom_line_reader_rows(struct fathom_line_reader *r, struct fathom_line_row *rows,
			       size_t cap);

fathom_err fathom_line_reader_error(const struct fathom_line_reader *r,
				    struct fathom_errinfo *reterr);

/*
 * The next file that the program itself defines (DW_LNE_define_file, versions 2 to 4); @c starts as
 * the program's opcodes. Its number follows those of the header. False when there are no more.
 */
bool fathom_line_next_defined(const struct fathom_line_program *p, struct fathom_cursor *c,
			      struct fathom_line_entry *ret);

#endif
