/* SPDX-License-Identifier: MIT */
/* The DWARF of symbol files: lines and inlined calls, version 4 (all debuggers read it). */
#include "host/publish/frame_image.h"
#include "safe/dwarf/dwarf.h"
#include "safe/dwarf/line_write.h"

/*
 * gdb takes rules of gcc's units (4.5 and later) as they are. In others it takes, at a return, the
 * return address from the stack: that of code with a reserved frame pointer is the shim's, a frame
 * too many.
 */
static const char producer[] = "GNU JIT 12.2";

enum { UNIT = 1, FUNCTION, FUNCTION_WITH_CALLS, INLINED, CALL };

static const uint8_t abbrevs[] = {
	UNIT,
	DW_TAG_compile_unit,
	1,
	DW_AT_producer,
	DW_FORM_string,
	DW_AT_language,
	DW_FORM_data1,
	DW_AT_name,
	DW_FORM_string,
	DW_AT_stmt_list,
	DW_FORM_sec_offset,
	DW_AT_low_pc,
	DW_FORM_addr,
	DW_AT_high_pc,
	DW_FORM_data4,
	0,
	0,
	FUNCTION,
	DW_TAG_subprogram,
	0,
	DW_AT_name,
	DW_FORM_string,
	DW_AT_external,
	DW_FORM_flag_present,
	DW_AT_low_pc,
	DW_FORM_addr,
	DW_AT_high_pc,
	DW_FORM_data4,
	0,
	0,
	FUNCTION_WITH_CALLS,
	DW_TAG_subprogram,
	1,
	DW_AT_name,
	DW_FORM_string,
	DW_AT_external,
	DW_FORM_flag_present,
	DW_AT_low_pc,
	DW_FORM_addr,
	DW_AT_high_pc,
	DW_FORM_data4,
	0,
	0,
	INLINED,
	DW_TAG_subprogram,
	0,
	DW_AT_name,
	DW_FORM_string,
	DW_AT_inline,
	DW_FORM_data1,
	0,
	0,
	CALL,
	DW_TAG_inlined_subroutine,
	1,
	DW_AT_abstract_origin,
	DW_FORM_ref4,
	DW_AT_low_pc,
	DW_FORM_addr,
	DW_AT_high_pc,
	DW_FORM_data4,
	DW_AT_call_file,
	DW_FORM_udata,
	DW_AT_call_line,
	DW_FORM_udata,
	0,
	0,
	0,
};

void fathom_jit_abbrevs_write(struct fathom_out *o)
{
	fathom_out_bytes(o, abbrevs, sizeof abbrevs);
}

bool fathom_jit_leaf_has_lines(const struct fathom_jit_leaf *leaf)
{
	for (size_t i = 0; i < leaf->n; i++)
		if (leaf->entries[i]->body->n_rows || leaf->entries[i]->body->n_copies)
			return true;
	return false;
}

/* Gives @f the next number, if it has none in this symbol file, and writes its name. */
static void put_file(struct fathom_line_writer *w, struct fathom_jit_file *f, uint32_t stamp,
		     uint32_t *n)
{
	if (!f || f->stamp == stamp)
		return;
	f->stamp = stamp;
	f->number = ++*n;
	fathom_line_file(w, f->name, strlen(f->name));
}

static void put_files(struct fathom_line_writer *w, const struct fathom_jit_leaf *leaf,
		      uint32_t stamp)
{
	uint32_t n = 0;

	for (size_t i = 0; i < leaf->n; i++) {
		const struct fathom_jit_body *b = leaf->entries[i]->body;

		put_file(w, b->file, stamp, &n);
		for (uint32_t k = 0; k < b->n_rows; k++)
			put_file(w, b->rows[k].file, stamp, &n);
		for (uint32_t k = 0; k < b->n_copies; k++)
			put_file(w, b->copies[k].file, stamp, &n);
	}
	fathom_line_end_files(w);
}

static void put_sequence(struct fathom_line_writer *w, const struct fathom_jit_entry *e)
{
	const struct fathom_jit_body *b = e->body;

	if (!b->n_rows)
		return;
	fathom_line_begin_sequence(w, e->low);
	for (uint32_t i = 0; i < b->n_rows; i++)
		fathom_line_row(w, e->low + b->rows[i].offset, b->rows[i].file->number,
				b->rows[i].line, b->rows[i].column);
	fathom_line_end_sequence(w, e->low + b->size);
}

void fathom_jit_lines_write(struct fathom_jit_registry *r, struct fathom_out *o,
			    const struct fathom_jit_leaf *leaf)
{
	struct fathom_line_writer w;

	fathom_line_begin(&w, o, sizeof leaf->entries[0]->low);
	put_files(&w, leaf, ++r->stamp);
	for (size_t i = 0; i < leaf->n; i++)
		put_sequence(&w, leaf->entries[i]);
	fathom_line_end(&w);
}

static void put_text(struct fathom_out *o, const char *text)
{
	fathom_out_bytes(o, text, strlen(text) + 1);
}

/* The functions that were inlined; where the first of them stands. They are of equal interest. */
static void put_inlined(struct fathom_out *o, const struct fathom_jit_body *b)
{
	for (uint32_t i = 0; i < b->n_copies; i++) {
		fathom_out_u8(o, INLINED);
		put_text(o, b->copies[i].name);
		fathom_out_u8(o, DW_INL_inlined);
	}
}

#define MOST_DEPTH 64

/* The calls, each within the one that its range lies in. @origin is where put_inlined() began. */
static void put_calls(struct fathom_out *o, const struct fathom_jit_entry *e, size_t origin)
{
	const struct fathom_jit_body *b = e->body;
	uint32_t ends[MOST_DEPTH];
	size_t depth = 0;

	for (uint32_t i = 0; i < b->n_copies; i++) {
		const struct fathom_jit_copy *c = &b->copies[i];

		while (depth && (c->begin >= ends[depth - 1] || c->end > ends[depth - 1] ||
				 depth == MOST_DEPTH)) {
			fathom_out_u8(o, 0);
			depth--;
		}
		fathom_out_u8(o, CALL);
		fathom_out_u32(o, (uint32_t)origin);
		fathom_out_u64(o, e->low + c->begin);
		fathom_out_u32(o, c->end - c->begin);
		fathom_out_uleb(o, c->file ? c->file->number : 0);
		fathom_out_uleb(o, c->line);
		ends[depth++] = c->end;
		origin += 1 + strlen(c->name) + 1 + 1;
	}
	while (depth--)
		fathom_out_u8(o, 0);
}

static void put_function(struct fathom_out *o, const struct fathom_jit_entry *e, size_t unit)
{
	const struct fathom_jit_body *b = e->body;
	const size_t origin = o->n - unit;

	if (!b->n_rows && !b->n_copies)
		return;
	put_inlined(o, b);
	fathom_out_u8(o, b->n_copies ? FUNCTION_WITH_CALLS : FUNCTION);
	put_text(o, b->name);
	fathom_out_u64(o, e->low);
	fathom_out_u32(o, (uint32_t)b->size);
	if (!b->n_copies)
		return;
	put_calls(o, e, origin);
	fathom_out_u8(o, 0);
}

/* Returns the source that the unit is called after: the first that has a name. */
static const char *name_of_unit(const struct fathom_jit_leaf *leaf)
{
	for (size_t i = 0; i < leaf->n; i++) {
		const struct fathom_jit_body *b = leaf->entries[i]->body;

		if (b->file)
			return b->file->name;
		if (b->n_rows && b->rows[0].file)
			return b->rows[0].file->name;
	}
	return "?";
}

void fathom_jit_info_write(struct fathom_out *o, const struct fathom_jit_leaf *leaf)
{
	const uint64_t low = leaf->entries[0]->low;
	const size_t unit = o->n;

	fathom_out_u32(o, 0);
	fathom_out_u16(o, 4);
	fathom_out_u32(o, 0); /* of .debug_abbrev */
	fathom_out_u8(o, 8);
	fathom_out_u8(o, UNIT);
	put_text(o, producer);
	fathom_out_u8(o, DW_LANG_C99);
	put_text(o, name_of_unit(leaf));
	fathom_out_u32(o, 0); /* of .debug_line */
	fathom_out_u64(o, low);
	fathom_out_u32(o, (uint32_t)(fathom_jit_high(leaf->entries[leaf->n - 1]) - low));
	for (size_t i = 0; i < leaf->n; i++)
		put_function(o, leaf->entries[i], unit);
	fathom_out_u8(o, 0);
	fathom_out_patch(o, unit, (uint32_t)(o->n - unit - 4));
}
