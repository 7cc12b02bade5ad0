/* SPDX-License-Identifier: MIT */
#include "safe/dwarf/line_write.h"

#include "safe/dwarf/dwarf.h"

/* The special opcodes of the line program (DWARF 4, 6.2.5.1). */
enum { LINE_BASE = -5, LINE_RANGE = 14, OPCODE_BASE = 13 };

void fathom_line_begin(struct fathom_line_writer *w, struct fathom_out *o, uint8_t address_size)
{
	/* Operands of the standard opcodes. */
	static const uint8_t lengths[OPCODE_BASE - 1] = { 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1 };

	*w = (struct fathom_line_writer){ .o = o, .unit = o->n, .address_size = address_size };
	fathom_out_u32(o, 0);
	fathom_out_u16(o, 4);
	fathom_out_u32(o, 0);
	w->header = o->n;
	/* The shortest instruction, operations in one, is_stmt. */
	fathom_out_bytes(o, "\1\1\1", 3);
	fathom_out_u8(o, (uint8_t)LINE_BASE);
	fathom_out_u8(o, LINE_RANGE);
	fathom_out_u8(o, OPCODE_BASE);
	fathom_out_bytes(o, lengths, sizeof lengths);
	fathom_out_u8(o, 0); /* no folders */
}

void fathom_line_file(struct fathom_line_writer *w, const char *name, size_t size)
{
	fathom_out_bytes(w->o, name, size);
	/* The end of the name; no folder, no time, no size. */
	fathom_out_bytes(w->o, "\0\0\0", 4);
}

void fathom_line_end_files(struct fathom_line_writer *w)
{
	fathom_out_u8(w->o, 0);
	fathom_out_patch(w->o, w->header - 4, (uint32_t)(w->o->n - w->header));
}

void fathom_line_begin_sequence(struct fathom_line_writer *w, uint64_t address)
{
	fathom_out_u8(w->o, 0);
	fathom_out_uleb(w->o, 1u + w->address_size);
	fathom_out_u8(w->o, DW_LNE_set_address);
	if (w->address_size == 8)
		fathom_out_u64(w->o, address);
	else
		fathom_out_u32(w->o, (uint32_t)address);
	w->address = address;
	w->file = w->line = 1;
	w->column = 0;
}

void fathom_line_row(struct fathom_line_writer *w, uint64_t address, uint32_t file, uint32_t line,
		     uint32_t column)
{
	const uint64_t forward = address - w->address;
	const int64_t down = (int64_t)line - w->line;
	const bool is_far =
		forward > UINT8_MAX || down < LINE_BASE || down >= LINE_BASE + LINE_RANGE;
	int64_t special = is_far ? UINT8_MAX + 1
				 : down - LINE_BASE + LINE_RANGE * (int64_t)forward + OPCODE_BASE;

	if (file != w->file) {
		fathom_out_u8(w->o, DW_LNS_set_file);
		fathom_out_uleb(w->o, file);
	}
	if (column != w->column) {
		fathom_out_u8(w->o, DW_LNS_set_column);
		fathom_out_uleb(w->o, column);
	}
	if (special > UINT8_MAX) {
		fathom_out_u8(w->o, DW_LNS_advance_pc);
		fathom_out_uleb(w->o, forward);
		fathom_out_u8(w->o, DW_LNS_advance_line);
		fathom_out_sleb(w->o, down);
		special = DW_LNS_copy;
	}
	fathom_out_u8(w->o, (uint8_t)special);
	w->address = address;
	w->file = file;
	w->line = line;
	w->column = column;
}

void fathom_line_end_sequence(struct fathom_line_writer *w, uint64_t address)
{
	fathom_out_u8(w->o, DW_LNS_advance_pc);
	fathom_out_uleb(w->o, address - w->address);
	fathom_out_bytes(w->o, "\0\1", 2);
	fathom_out_u8(w->o, DW_LNE_end_sequence);
}

void fathom_line_end(struct fathom_line_writer *w)
{
	fathom_out_patch(w->o, w->unit, (uint32_t)(w->o->n - w->unit - 4));
}
