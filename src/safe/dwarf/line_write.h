/* SPDX-License-Identifier: MIT */
/* Writes line tables (DWARF 4, section 6.2), which line.h reads; constants of other sections. */
#ifndef FATHOM_DWARF_LINE_WRITE_H
#define FATHOM_DWARF_LINE_WRITE_H

#include "safe/dwarf/cfi_write.h"

/* Constants that are only written (DWARF 4, 7.5); the rest stands with the readers. */
enum { DW_AT_inline = 0x20, DW_AT_producer = 0x25, DW_AT_external = 0x3f, DW_INL_inlined = 0x01 };

/* Most bytes of a row, and of the rest of a sequence. */
#define FATHOM_LINE_ROW_SIZE      40
#define FATHOM_LINE_SEQUENCE_SIZE 40

/* A table that is being written. */
struct fathom_line_writer {
	struct fathom_out *o;
	size_t unit;
	size_t header;
	uint8_t address_size;
	/* The registers of the program. */
	uint64_t address;
	uint32_t file;
	uint32_t line;
	uint32_t column;
};

/* Begins a table without folders. */
void fathom_line_begin(struct fathom_line_writer *w, struct fathom_out *o, uint8_t address_size);
/* Adds file 1, and so on. */
void fathom_line_file(struct fathom_line_writer *w, const char *name, size_t size);
/* Ends the files: sequences follow. */
void fathom_line_end_files(struct fathom_line_writer *w);
/* Begins a sequence at @address, whose first row is there. */
void fathom_line_begin_sequence(struct fathom_line_writer *w, uint64_t address);
/* Adds a row; addresses do not fall. */
void fathom_line_row(struct fathom_line_writer *w, uint64_t address, uint32_t file, uint32_t line,
		     uint32_t column);
void fathom_line_end_sequence(struct fathom_line_writer *w, uint64_t address);
void fathom_line_end(struct fathom_line_writer *w);

#endif
