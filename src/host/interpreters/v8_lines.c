/* SPDX-License-Identifier: MIT */
/*
 * Lines of V8's functions (codegen/source-position-table.cc, baseline/bytecode-offset-iterator.h).
 * A bytecode has a position in the source of its script, a position a line. What Sparkplug compiles
 * has as many pieces of code as bytecodes, and a list of the sizes of the former. Of code that was
 * optimized nothing says where it is.
 */
#include <stdlib.h>

#include "host/interpreters/v8.h"
#include "safe/base/cursor.h"

/* The most characters of a source that are looked through. */
#define MOST_SOURCE (UINT32_C(1) << 28)

/* Of positions: the lowest bit is of others than JavaScript; the 30 after it are one too many. */
enum { POSITION_SHIFT = 1 };
#define POSITION_MASK INT64_C(0x3fffffff)

/* Bytecodes that widen the operands of the next one; the first two again for debuggers. */
enum { WIDE = 0, WIDENING = 4 };

/* Takes a number of 7 bits a byte, the lowest first; the lowest bit of all is its sign. */
static int64_t take_signed(struct fathom_cursor *c)
{
	const uint64_t value = cur_uleb(c);

	return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

int64_t fathom_v8_position(struct fathom_bytes table, uint64_t offset)
{
	struct fathom_cursor c = cur_init(table, false);
	int64_t at = -1;
	uint64_t position = 0;
	int64_t found = -1;

	while (c.p < c.end) {
		const int64_t step = take_signed(&c);
		/* Of an expression, which is no statement, it is the complement. */
		const uint64_t bytes = (uint64_t)(step ^ (step >> 63));

		position += (uint64_t)take_signed(&c);
		if (c.bad || bytes > FATHOM_V8_MOST_BYTES)
			return -1;
		at += (int64_t)bytes;
		if (at > (int64_t)offset)
			break;
		found = (int64_t)(position >> POSITION_SHIFT) & POSITION_MASK;
		found = position & 1 ? -1 : found - 1;
	}
	return found;
}

/* Reads the bytes of the array @tagged, of @type. *@ret.data: NULL, or to be freed. */
static fathom_err read_bytes(const struct fathom_runtime_found *f, uint64_t tagged, int type,
			     uint64_t data, struct fathom_bytes *ret)
{
	int32_t length;
	uint8_t *bytes;

	*ret = (struct fathom_bytes){ NULL, 0 };
	if (fathom_v8_type(f, tagged) != type || !fathom_v8_smi(f, tagged, ARRAY_LENGTH, &length) ||
	    length < 0 || (uint64_t)length > FATHOM_V8_MOST_BYTES)
		return FATHOM_OK;
	bytes = malloc((size_t)length + 1);
	if (!bytes)
		return FATHOM_E_MEMORY;
	if (!fathom_reader_read(f->memory, tagged - V8_TAG + data, bytes, (size_t)length)) {
		free(bytes);
		return FATHOM_OK;
	}
	*ret = (struct fathom_bytes){ bytes, (size_t)length };
	return FATHOM_OK;
}

/*
 * Finds the bytecode whose code the byte @at of a function is in, by the sizes of these pieces in
 * @pieces; -1: there is none. The first piece is the function's prologue.
 */
static int64_t find_bytecode(const struct fathom_v8 *v, struct fathom_bytes bytecodes,
			     struct fathom_bytes pieces, uint64_t at)
{
	struct fathom_cursor c = cur_init(pieces, false);
	uint64_t end = cur_uleb(&c);
	uint64_t offset = 0;
	uint64_t next = 0;

	while (end <= at) {
		unsigned width = 0;

		if (next >= bytecodes.size)
			return -1;
		offset = next;
		if (bytecodes.data[next] < WIDENING) {
			width = bytecodes.data[next] % 2 == WIDE ? 1 : 2;
			if (++next >= bytecodes.size)
				return -1;
		}
		if (bytecodes.data[next] >= v->n_sizes || !v->sizes[width][bytecodes.data[next]])
			return -1;
		next += v->sizes[width][bytecodes.data[next]];
		end += cur_uleb(&c);
		if (c.bad)
			return -1;
	}
	return (int64_t)offset;
}

/* Finds where the code of @code, an object, is. */
static bool find_code(const struct fathom_runtime_found *f, uint64_t code, uint64_t *ret_start,
		      uint32_t *ret_size)
{
	const struct fathom_v8_offsets *o = &((const struct fathom_v8 *)f->own)->offsets;

	if (fathom_v8_type(f, code) != o->type_code ||
	    !fathom_v8_u32(f, code, o->code_size, ret_size))
		return false;
	*ret_start = code - V8_TAG + o->code_start;
	return o->code_is_inside || fathom_v8_member(f, code, o->code_start, ret_start);
}

/*
 * Finds the bytecode that @frame executes by the code that Sparkplug has made of its function;
 * *@ret_offset is -1 if it executes other code.
 */
static fathom_err find_compiled(const struct fathom_runtime_found *f,
				const struct fathom_script_frame *frame, uint64_t *ret_bytecode,
				int64_t *ret_offset)
{
	const struct fathom_v8 *v = f->own;
	const struct fathom_v8_offsets *o = &v->offsets;
	struct fathom_bytes bytecodes = { NULL, 0 };
	struct fathom_bytes pieces = { NULL, 0 };
	uint64_t positions;
	uint64_t data;
	uint64_t code;
	uint64_t start;
	uint32_t size;
	fathom_err err;

	*ret_offset = -1;
	if (!fathom_v8_member(f, frame->code + V8_TAG, SHARED_DATA, &data))
		return FATHOM_OK;
	code = data;
	if (o->baseline_code && (fathom_v8_type(f, data) != o->type_baseline ||
				 !fathom_v8_member(f, data, o->baseline_code, &code)))
		return FATHOM_OK;
	if (!find_code(f, code, &start, &size) || frame->pc - start >= size ||
	    !fathom_v8_member(f, data, o->baseline_bytecode, ret_bytecode) ||
	    !fathom_v8_member(f, code, o->code_positions, &positions))
		return FATHOM_OK;
	err = read_bytes(f, *ret_bytecode, o->type_bytecode, o->bytecode_data, &bytecodes);
	err = err ? err : read_bytes(f, positions, o->type_bytes, ARRAY_DATA, &pieces);
	if (!err && bytecodes.data && pieces.data)
		*ret_offset = find_bytecode(v, bytecodes, pieces, frame->pc - start);
	free((void *)(uintptr_t)bytecodes.data);
	free((void *)(uintptr_t)pieces.data);
	return err;
}

/* Finds the line of character @position by the ends of all lines, if V8 has a list of them. */
static bool find_in_ends(const struct fathom_runtime_found *f, uint64_t script, int32_t position,
			 int32_t *ret)
{
	const struct fathom_v8 *v = f->own;
	uint64_t ends;
	int32_t n;
	int32_t low = 0;

	if (!fathom_v8_member(f, script, SCRIPT_LINE_ENDS, &ends) ||
	    fathom_v8_type(f, ends) != v->offsets.type_array ||
	    !fathom_v8_smi(f, ends, ARRAY_LENGTH, &n) || n <= 0)
		return false;
	*ret = n;
	while (low < *ret) {
		const int32_t middle = low + (*ret - low) / 2;
		int32_t end;

		if (!fathom_v8_smi(f, ends, ARRAY_DATA + 8 * (uint64_t)middle, &end))
			return false;
		if (end < position)
			low = middle + 1;
		else
			*ret = middle;
	}
	return *ret < n;
}

/* Counts the ends of lines among the @n characters at @bytes. @last: the one before them. */
static int32_t count_ends(const struct fathom_runtime_found *f, const uint8_t *bytes, uint32_t n,
			  bool is_wide, uint16_t *last)
{
	int32_t found = 0;

	for (uint32_t i = 0; i < n; i++) {
		const uint16_t c = is_wide ? load_u16(bytes + 2 * (size_t)i, f->swap) : bytes[i];

		/* "\r\n" is one. */
		found += c == '\n' ? *last != '\r' : c == '\r' || c == 0x2028 || c == 0x2029;
		*last = c;
	}
	return found;
}

/* Finds the line of character @position by the source. */
static bool find_in_source(const struct fathom_runtime_found *f, uint64_t script, int32_t position,
			   int32_t *ret)
{
	uint8_t bytes[4096];
	struct fathom_v8_text t;
	uint64_t source;
	uint16_t last = 0;

	*ret = 0;
	if (!fathom_v8_member(f, script, SCRIPT_SOURCE, &source) ||
	    !fathom_v8_flat_text(f, source, &t) || (uint32_t)position > t.length ||
	    (uint32_t)position > MOST_SOURCE)
		return false;
	for (uint32_t i = 0, n; i < (uint32_t)position; i += n) {
		const uint32_t most = (uint32_t)sizeof bytes >> t.is_wide;

		n = (uint32_t)position - i < most ? (uint32_t)position - i : most;
		if (!fathom_runtime_constant(f, t.avma + ((uint64_t)i << t.is_wide), bytes,
					     (size_t)n << t.is_wide))
			return false;
		*ret += count_ends(f, bytes, n, t.is_wide, &last);
	}
	return true;
}

/* Finds the line of bytecode @offset of @bytecode, a tagged pointer. */
static fathom_err find_line(const struct fathom_runtime_found *f, uint64_t script,
			    uint64_t bytecode, uint64_t offset, uint32_t *ret)
{
	const struct fathom_v8_offsets *o = &((const struct fathom_v8 *)f->own)->offsets;
	struct fathom_bytes table;
	int64_t position;
	uint64_t lines;
	int32_t first;
	int32_t line;

	if (fathom_v8_type(f, bytecode) != o->type_bytecode ||
	    !fathom_v8_member(f, bytecode, o->bytecode_lines, &lines))
		return FATHOM_OK;
	FATHOM_TRY(read_bytes(f, lines, o->type_bytes, ARRAY_DATA, &table));
	position = table.data ? fathom_v8_position(table, offset) : -1;
	free((void *)(uintptr_t)table.data);
	if (position < 0 || position > INT32_MAX ||
	    !fathom_v8_smi(f, script, SCRIPT_FIRST_LINE, &first) || first < 0 ||
	    (!find_in_ends(f, script, (int32_t)position, &line) &&
	     !find_in_source(f, script, (int32_t)position, &line)))
		return FATHOM_OK;
	*ret = (uint32_t)first + (uint32_t)line + 1;
	return FATHOM_OK;
}

fathom_err fathom_v8_line(const struct fathom_runtime_found *f,
			  const struct fathom_script_frame *frame, uint64_t script, uint32_t *ret)
{
	const struct fathom_v8_offsets *o = &((const struct fathom_v8 *)f->own)->offsets;
	uint64_t bytecode = frame->method + V8_TAG;
	int64_t offset;

	*ret = 0;
	if (!frame->method)
		return FATHOM_OK;
	if (frame->in_place == FATHOM_IN_PLACE_JIT) {
		FATHOM_TRY(find_compiled(f, frame, &bytecode, &offset));
		if (offset < 0)
			return FATHOM_OK;
	} else {
		offset = (int64_t)(frame->pc - frame->method - o->bytecode_data);
	}
	return find_line(f, script, bytecode, (uint64_t)offset, ret);
}
