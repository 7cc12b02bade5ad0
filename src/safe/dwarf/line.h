/* SPDX-License-Identifier: MIT */
/*
 * .debug_line, versions 2 to 5 (DWARF 5, 6.2): the header with its directories and files, and the
 * program, run row by row.
 *
 * Not handled: the experimental two-level tables, whose version is unknown and refused.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_DWARF_LINE_H
#define FATHOM_DWARF_LINE_H

#include "safe/dwarf/unit.h"

/* A checked header, and where its tables and its program are. */
struct fathom_line_program {
	const struct fathom_dwarf *dwarf;
	struct fathom_cursor tables;  /* directories and files */
	struct fathom_cursor opcodes; /* the program */
	const uint8_t *section;
	const uint8_t *operand_counts; /* from opcode 1 on */
	struct fathom_encoding encoding;
	uint8_t min_instruction_length;
	uint8_t max_operations;
	uint8_t line_range;
	uint8_t opcode_base;
	int8_t line_base;
	bool default_is_stmt;
};

/* Reads the header at @off. @address_size is the unit's, for versions that do not state one. */
fathom_err fathom_line_program_read(const struct fathom_dwarf *dwarf, uint64_t off,
				    uint8_t address_size, struct fathom_line_program *ret,
				    struct fathom_errinfo *reterr);

/* A directory or file. Its name is looked up only on demand. */
struct fathom_line_entry {
	struct fathom_attr name;
	uint64_t directory; /* files: an index of the directories, as the version counts */
	bool is_file;
};

/*
 * A walk over the directories and then the files of a header. Indices count from 0 in version 5,
 * where entry 0 is the unit's own directory or file; from 1 in older versions.
 */
struct fathom_line_tables {
	const struct fathom_line_program *program;
	struct fathom_cursor c;
	uint64_t left; /* version 5: entries left in the current table */
	uint32_t n_formats;
	uint8_t phase;
	uint16_t types[64];
	uint16_t forms[64];
	struct fathom_attr source; /* embedded text of the last entry; form 0 if none */
	struct fathom_attr md5;    /* of the text of the last entry; form 0 if none */
};

void fathom_line_tables_init(struct fathom_line_tables *t, const struct fathom_line_program *p);

/* Yields the next entry. Returns FATHOM_OK, FATHOM_END, or an error. */
fathom_err fathom_line_tables_next(struct fathom_line_tables *t, struct fathom_line_entry *ret,
				   struct fathom_errinfo *reterr);

/* Returns the name of @entry; @unit resolves indexed strings. data is NULL if it is damaged. */
struct fathom_str fathom_line_entry_name(const struct fathom_line_program *p,
					 const struct fathom_unit *unit,
					 const struct fathom_line_entry *entry);

/* Returns the embedded text of the last entry that @t has yielded; empty if there is none. */
struct fathom_str fathom_line_tables_source(const struct fathom_line_tables *t,
					    const struct fathom_unit *unit);

/* Returns the MD5, 16 bytes, of the text of the last entry that @t has yielded; NULL for none. */
const uint8_t *fathom_line_tables_md5(const struct fathom_line_tables *t);

/* One row. It holds from address up to the next row of its sequence. */
struct fathom_line_row {
	uint64_t address; /* svma */
	uint32_t file;
	uint32_t line;
	uint32_t column;
	uint32_t discriminator;
	uint8_t op_index;
	bool is_stmt;
	bool end_sequence; /* address is the first one after the sequence; nothing else counts */
};

/* The effects of the special opcodes, computed once per distinct header. */
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
	 * Of successive rows up to this address only the last is yielded, as long as they are in
	 * order. The caller sets it between calls; it becomes 0 at the end of the sequence.
	 */
	uint64_t dull;
	struct fathom_line_specials specials;
};

/* Prepares @r, which holds zeros or the state of an earlier reader, whose tables are reused. */
void fathom_line_reader_init(struct fathom_line_reader *r, const struct fathom_line_program *p);

/*
 * Runs the program until @cap rows are in @rows or it ends. Returns their number, 0 at the end. A
 * damaged program ends early, and fathom_line_reader_error() says so.
 */
size_t fathom_line_reader_rows(struct fathom_line_reader *r, struct fathom_line_row *rows,
			       size_t cap);

fathom_err fathom_line_reader_error(const struct fathom_line_reader *r,
				    struct fathom_errinfo *reterr);

/*
 * Yields the next file that the program itself defines (DW_LNE_define_file, versions 2 to 4). @c
 * starts as the program's opcodes. File numbers go on from those of the header. Returns false at
 * the end.
 */
bool fathom_line_next_defined(const struct fathom_line_program *p, struct fathom_cursor *c,
			      struct fathom_line_entry *ret);

#endif
