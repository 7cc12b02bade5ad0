/* SPDX-License-Identifier: MIT */
/*
 * A frame as a line:
 *
 *	 > FUNCTION+0xOFFSET FILE:LINE:COLUMN
 *	   inlined into FUNCTION FILE:LINE:COLUMN
 *
 * The module stands in place of an unknown line, with the address as stated in its file where there
 * is no name. As JSON a frame has the members that fathom stack prints.
 */
#include "host/events/stack_lines.h"

#include "fathom/format.h"
#include "host/events/escape.h"

static const struct fathom_escape escape = { "\\", NULL };

static void put_hex(struct fathom_trace_writer *w, uint64_t value)
{
	char digits[FATHOM_NUMBER_SIZE];

	fathom_writer_bytes(w, digits, fathom_format_hex(digits, value));
}

/* Appends the name and line of @frame. */
static void put_place(struct fathom_trace_writer *w, const struct fathom_frame *frame)
{
	if (!frame->file)
		return;
	fathom_writer_str(w, " ");
	fathom_escape_name(w, &escape, frame->file);
	fathom_writer_str(w, ":");
	fathom_writer_dec(w, frame->line);
	if (!frame->column)
		return;
	fathom_writer_str(w, ":");
	fathom_writer_dec(w, frame->column);
}

/* Appends the module, which is said where no line is known. */
static void put_module(struct fathom_trace_writer *w, const struct fathom_answer *a)
{
	fathom_writer_str(w, " ");
	if (a->module)
		fathom_escape_name(w, &escape, a->module->path);
	if (a->module && a->symbol)
		return;
	if (a->module)
		fathom_writer_str(w, "+");
	put_hex(w, a->module ? a->module_address : a->pc.address);
}

void fathom_stack_lines_put(struct fathom_trace_writer *w, const struct fathom_trace_frame *f)
{
	const struct fathom_answer *a = f->frame.answer;
	const struct fathom_frame *frame = a->frame;
	const char *name = frame && frame->function ? frame->function : a->symbol;

	fathom_writer_str(w, " > ");
	fathom_escape_name(w, &escape, name ? name : "??");
	if (name) {
		fathom_writer_str(w, "+");
		put_hex(w, frame && frame->outer && a->pc.address >= frame->start
				   ? a->pc.address - frame->start
				   : a->offset);
	} else if (a->reason) {
		fathom_writer_str(w, " (");
		fathom_writer_str(w, fathom_reason_name((enum fathom_reason)a->reason));
		fathom_writer_str(w, ")");
	}
	if (frame && frame->file)
		put_place(w, frame);
	else
		put_module(w, a);
	fathom_writer_str(w, "\n");
	while (frame && (frame = frame->outer) != NULL) {
		fathom_writer_str(w, "   inlined into ");
		fathom_escape_name(w, &escape, frame->function ? frame->function : "??");
		put_place(w, frame);
		fathom_writer_str(w, "\n");
	}
}

static void put_key(struct fathom_trace_writer *w, const char *key)
{
	fathom_writer_str(w, ",\"");
	fathom_writer_str(w, key);
	fathom_writer_str(w, "\":");
}

/* Appends a member with the @n bytes at @text; null if there are none. */
static void put_text(struct fathom_trace_writer *w, const char *key, const char *text, size_t n)
{
	put_key(w, key);
	if (text && n)
		fathom_writer_json_bytes(w, text, n);
	else
		fathom_writer_str(w, "null");
}

static void put_word(struct fathom_trace_writer *w, const char *key, const char *word)
{
	put_text(w, key, word, word ? strlen(word) : 0);
}

static void put_address(struct fathom_trace_writer *w, const char *key, uint64_t address)
{
	put_key(w, key);
	if (address == FATHOM_NO_ADDRESS) {
		fathom_writer_str(w, "null");
		return;
	}
	fathom_writer_str(w, "\"");
	put_hex(w, address);
	fathom_writer_str(w, "\"");
}

/* Appends a member with a number; null for 0. */
static void put_count(struct fathom_trace_writer *w, const char *key, uint64_t value)
{
	put_key(w, key);
	if (value)
		fathom_writer_dec(w, value);
	else
		fathom_writer_str(w, "null");
}

static void put_build_id(struct fathom_trace_writer *w, const struct fathom_module_info *m)
{
	static const char digits[] = "0123456789abcdef";

	put_key(w, "build_id");
	if (!m || !m->build_id) {
		fathom_writer_str(w, "null");
		return;
	}
	fathom_writer_str(w, "\"");
	for (uint32_t i = 0; i < m->build_id_size; i++) {
		const char byte[] = { digits[m->build_id[i] >> 4], digits[m->build_id[i] & 15] };

		fathom_writer_bytes(w, byte, sizeof byte);
	}
	fathom_writer_str(w, "\"");
}

static void put_frame(struct fathom_trace_writer *w, const struct fathom_frame *frame)
{
	fathom_writer_str(w, "{\"function\":");
	if (frame->function)
		fathom_writer_json_bytes(w, frame->function, frame->function_size);
	else
		fathom_writer_str(w, "null");
	put_text(w, "linkage_name", frame->linkage_name, frame->linkage_size);
	put_text(w, "file", frame->file, frame->file_size);
	put_count(w, "line", frame->line);
	put_count(w, "column", frame->column);
	put_count(w, "discriminator", frame->discriminator);
	fathom_writer_str(w, frame->outer ? ",\"inlined\":true}" : ",\"inlined\":false}");
}

static void put_frames(struct fathom_trace_writer *w, const struct fathom_answer *a)
{
	const struct fathom_frame of_symbol = { .function = a->symbol,
						.linkage_name = a->linkage_name,
						.function_size = a->symbol_size,
						.linkage_size = a->linkage_size };
	const struct fathom_frame *frame = a->frame;

	if (!frame && a->symbol)
		frame = &of_symbol;
	put_key(w, "frames");
	fathom_writer_str(w, "[");
	for (; frame; frame = frame->outer) {
		put_frame(w, frame);
		if (frame->outer)
			fathom_writer_str(w, ",");
	}
	fathom_writer_str(w, "]");
}

void fathom_stack_json_head(struct fathom_trace_writer *w, const struct fathom_trace_frame *f)
{
	fathom_writer_str(w, "\"pc\":\"");
	put_hex(w, f->frame.pc.address);
	fathom_writer_str(w, "\"");
	put_address(w, "sp", f->frame.sp);
	put_word(w, "trust", fathom_trust_name((enum fathom_trust)f->frame.trust));
	put_key(w, "signal_handler_called");
	fathom_writer_str(w, f->frame.is_signal_return ? "true" : "false");
}

void fathom_stack_json_names(struct fathom_trace_writer *w, const struct fathom_trace_frame *f)
{
	const struct fathom_answer *a = f->frame.answer;

	put_address(w, "address", a->pc.address);
	put_word(w, "module", a->module ? a->module->path : NULL);
	put_build_id(w, a->module);
	put_address(w, "module_address", a->module_address);
	put_text(w, "symbol", a->symbol, a->symbol_size);
	put_text(w, "linkage_name", a->linkage_name, a->linkage_size);
	put_key(w, "offset");
	if (a->symbol)
		fathom_writer_dec(w, a->offset);
	else
		fathom_writer_str(w, "null");
	put_count(w, "size", a->symbol ? a->size : 0);
	put_word(w, "source", fathom_source_name((enum fathom_source)a->source));
	put_frames(w, a);
	put_word(w, "reason", fathom_reason_name((enum fathom_reason)a->reason));
}
