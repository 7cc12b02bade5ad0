/* SPDX-License-Identifier: MIT */
/*
 * Names, files and lines of CPython's code objects (Objects/codeobject.c; Objects/locations.md, or
 * before 3.11 Objects/lnotab_notes.txt; Include/cpython/unicodeobject.h; PEP 626, PEP 383 for names
 * that are not UTF-8).
 */
#include <stdlib.h>
#include <string.h>

#include "host/interpreters/python.h"
#include "safe/base/cursor.h"
#include "safe/base/utf8.h"

/* Bytes of an object before its type, of PyVarObject before its size, of a bytes before its own. */
enum { OBJECT_TYPE = 8, VAR_SIZE = 16, BYTES_SIZE = 32 };

/* Bytes of PyASCIIObject before its length and its state. */
enum { TEXT_LENGTH = 16, TEXT_STATE = 32 };

/* Bits of the state: the size of a character, whether it is in one piece, whether it is ASCII. */
enum { STATE_KIND = 2, STATE_COMPACT = 5, STATE_ASCII = 6 };

/* The longest line table that is read: of larger ones the frame has no line. */
#define MAX_LINE_TABLE ((uint64_t)1 << 20)

/* In 3.10, in place of a number of lines: there is none. */
#define NO_LINE (-128)

/* Kinds of entries of a line table (Objects/locations.md). */
enum { ENTRY_ONE_LINE = 10, ENTRY_NO_COLUMNS = 13, ENTRY_LONG = 14, ENTRY_NONE = 15 };

static bool is_of_type(const struct fathom_runtime_found *f, uint64_t object, uint64_t type)
{
	uint64_t is;

	return object && fathom_runtime_number(f, object + OBJECT_TYPE, 8, &is) && is == type;
}

/* Appends the UTF-8 of @c to @to, which has room for UTF8_MOST bytes; returns how many it has. */
static size_t put_utf8(char *to, uint32_t c)
{
	/* A byte of a name that is not UTF-8. */
	if (c >= 0xdc80 && c <= 0xdcff) {
		to[0] = (char)(c & 0xff);
		return 1;
	}
	return utf8_encode((c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff ? 0xfffd : c, to);
}

/* Copies @n characters of @kind bytes at @from, as UTF-8; NULL without memory. */
static char *to_utf8(const struct fathom_runtime_found *f, const uint8_t *from, size_t n,
		     uint32_t kind, struct fathom_arena *arena, uint32_t *ret_size)
{
	char *to = fathom_arena_alloc(arena, UTF8_MOST * n + 1);
	size_t size = 0;

	for (size_t i = 0; to && i < n; i++) {
		uint32_t c = from[i * kind];

		if (kind == 2)
			c = load_u16(from + i * 2, f->swap);
		else if (kind == 4)
			c = load_u32(from + i * 4, f->swap);
		/* A NUL would end the text. */
		size += put_utf8(to + size, c ? c : 0xfffd);
	}
	if (to)
		to[size] = '\0';
	*ret_size = (uint32_t)size;
	return to;
}

/* Reads the str at @object. FATHOM_E_CHANGED if it is none, or longer than a name may be. */
static fathom_err read_text(const struct fathom_runtime_found *f, uint64_t object,
			    struct fathom_arena *arena, struct fathom_str *ret)
{
	const struct fathom_python *p = f->own;
	const struct fathom_python_offsets *o = p->offsets;
	uint64_t length;
	uint64_t state;
	uint32_t kind;
	uint8_t *bytes;
	char *text = NULL;

	if (!is_of_type(f, object, p->text_type) ||
	    !fathom_runtime_number(f, object + TEXT_LENGTH, 8, &length) ||
	    !fathom_runtime_number(f, object + TEXT_STATE, 4, &state))
		return FATHOM_E_CHANGED;
	kind = state >> STATE_KIND & 7;
	if (!(state >> STATE_COMPACT & 1) || (kind != 1 && kind != 2 && kind != 4) ||
	    length > FATHOM_SCRIPT_MAX_NAME)
		return FATHOM_E_CHANGED;
	bytes = malloc((size_t)length * kind + 1);
	if (!bytes)
		return FATHOM_E_MEMORY;
	object += state >> STATE_ASCII & 1 ? o->text_size : o->wide_size;
	if (fathom_reader_read(f->memory, object, bytes, (size_t)length * kind))
		text = to_utf8(f, bytes, (size_t)length, kind, arena, &ret->size);
	else
		ret->size = UINT32_MAX;
	free(bytes);
	ret->data = text;
	if (text)
		return FATHOM_OK;
	return ret->size == UINT32_MAX ? FATHOM_E_CHANGED : FATHOM_E_MEMORY;
}

/* Takes a number of 6 bits a byte, the lowest first. */
static uint32_t take_number(struct fathom_cursor *c)
{
	uint32_t value = 0;
	uint8_t byte = 0x40;

	for (unsigned shift = 0; byte & 0x40 && shift < 32 && !c->bad; shift += 6) {
		byte = cur_u8(c);
		value |= (uint32_t)(byte & 0x3f) << shift;
	}
	return value;
}

static uint32_t take_signed(struct fathom_cursor *c)
{
	const uint32_t value = take_number(c);

	return value & 1 ? 0 - (value >> 1) : value >> 1;
}

/* Passes the rest of an entry of kind @kind; returns what it adds to the line. */
static uint32_t take_entry(struct fathom_cursor *c, unsigned kind)
{
	uint32_t added = 0;

	switch (kind) {
	case ENTRY_NONE:
		break;
	case ENTRY_LONG:
		added = take_signed(c);
		for (int i = 0; i < 3; i++)
			(void)take_number(c);
		break;
	case ENTRY_NO_COLUMNS:
		added = take_signed(c);
		break;
	default:
		if (kind >= ENTRY_ONE_LINE) {
			added = kind - ENTRY_ONE_LINE;
			(void)cur_u8(c);
		}
		(void)cur_u8(c);
	}
	return added;
}

uint32_t fathom_python_line(struct fathom_bytes table, uint32_t first_line, uint64_t position)
{
	struct fathom_cursor c = cur_init(table, false);
	uint32_t line = first_line;
	uint64_t end = 0;

	while (c.p < c.end && !c.bad) {
		const uint8_t byte = cur_u8(&c);
		const unsigned kind = byte >> 3 & 15;

		line += take_entry(&c, kind);
		/* Units of two bytes. */
		end += 2u * ((byte & 7u) + 1);
		if (position < end && !c.bad)
			return kind == ENTRY_NONE ? 0 : line;
	}
	return 0;
}

uint32_t fathom_python_old_line(struct fathom_bytes table, uint32_t first_line, uint64_t position,
				uint16_t minor)
{
	struct fathom_cursor c = cur_init(table, false);
	uint32_t line = first_line;
	uint64_t at = 0;

	while (cur_left(&c) >= 2) {
		const uint8_t bytes = cur_u8(&c);
		const int lines = (int8_t)cur_u8(&c);

		/* Before 3.10, a pair says where the next line begins. */
		if (minor < 10 && at + bytes > position)
			break;
		at += bytes;
		if (lines != NO_LINE || minor < 10)
			line += (uint32_t)lines;
		if (minor >= 10 && position < at)
			return lines == NO_LINE ? 0 : line;
	}
	return minor < 10 ? line : 0;
}

/* Finds the line of the instruction of @frame in @table. */
static uint32_t line_in(const struct fathom_runtime_found *f,
			const struct fathom_script_frame *frame, struct fathom_bytes table,
			uint32_t first)
{
	const struct fathom_python_offsets *o = ((const struct fathom_python *)f->own)->offsets;
	uint64_t instructions;

	if (o->minor > 10)
		return fathom_python_line(table, first, frame->pc - frame->code - o->code_size);
	if (!fathom_runtime_number(f, frame->code + o->code_size, 8, &instructions))
		return 0;
	return fathom_python_old_line(table, first, frame->pc - instructions - BYTES_SIZE,
				      o->minor);
}

/* Finds the line of @frame; 0 if it has none. FATHOM_E_MEMORY. */
static fathom_err read_line(const struct fathom_runtime_found *f,
			    const struct fathom_script_frame *frame, uint32_t *ret)
{
	const struct fathom_python *p = f->own;
	const struct fathom_python_offsets *o = p->offsets;
	uint64_t first;
	uint64_t table;
	uint64_t size;
	uint8_t *bytes;

	*ret = 0;
	if (!fathom_runtime_number(f, frame->code + o->code_first_line, 4, &first) ||
	    !fathom_runtime_number(f, frame->code + o->code_line_table, 8, &table) ||
	    !is_of_type(f, table, p->bytes_type) ||
	    !fathom_runtime_number(f, table + VAR_SIZE, 8, &size) || size > MAX_LINE_TABLE)
		return FATHOM_OK;
	bytes = malloc((size_t)size + 1);
	if (!bytes)
		return FATHOM_E_MEMORY;
	if (fathom_reader_read(f->memory, table + BYTES_SIZE, bytes, (size_t)size))
		*ret = line_in(f, frame, (struct fathom_bytes){ bytes, (size_t)size },
			       (uint32_t)first);
	free(bytes);
	return FATHOM_OK;
}

uint64_t fathom_python_mark(const struct fathom_runtime_found *f, uint64_t code)
{
	const struct fathom_python *p = f->own;
	const uint16_t members[] = { p->offsets->code_file, p->offsets->code_qualname,
				     p->offsets->code_line_table };
	uint64_t mark = 0;

	for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
		uint64_t word = 0;

		(void)fathom_runtime_number(f, code + members[i], 8, &word);
		/* Multiplied by a fraction of the golden ratio. */
		mark = (mark ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	}
	return mark;
}

fathom_err fathom_python_name(struct fathom_runtime_found *f,
			      const struct fathom_script_frame *frame, struct fathom_arena *arena,
			      struct fathom_script_name *ret)
{
	const struct fathom_python *p = f->own;
	const struct fathom_python_offsets *o = p->offsets;
	uint64_t function;
	uint64_t file;
	fathom_err err;

	if (!is_of_type(f, frame->code, p->code_type) ||
	    fathom_python_mark(f, frame->code) != frame->mark ||
	    !fathom_runtime_number(f, frame->code + o->code_qualname, 8, &function) ||
	    !fathom_runtime_number(f, frame->code + o->code_file, 8, &file))
		return FATHOM_E_CHANGED;
	FATHOM_TRY(read_text(f, function, arena, &ret->function));
	err = read_text(f, file, arena, &ret->file);
	if (err == FATHOM_E_MEMORY)
		return err;
	if (err)
		ret->file = (struct fathom_str){ 0 };
	return read_line(f, frame, &ret->line);
}
