/* SPDX-License-Identifier: MIT */
#include "cli/print.h"

#include <string.h>

#include "cli/json.h"

/* Returns the bytes from where the innermost frame's code starts to the address. */
static uint64_t offset_in(const struct fathom_answer *a)
{
	/* From the start of the inlined copy, else from the symbol. */
	if (a->frame && a->frame->outer && a->pc.address >= a->frame->start)
		return a->pc.address - a->frame->start;
	return a->offset;
}

static void print_place(struct out *o, const struct fathom_frame *frame, bool has_line)
{
	if (!frame->file)
		return;
	out_char(o, ' ');
	out_begin_part(o, OUT_FILE);
	out_text(o, frame->file, frame->file_size);
	if (has_line) {
		out_char(o, ':');
		out_dec(o, frame->line);
	}
	if (frame->column) {
		out_char(o, ':');
		out_dec(o, frame->column);
	}
	out_end_part(o);
}

void print_symbol(struct out *o, const char *name, size_t size)
{
	out_begin_part(o, OUT_NAME);
	out_text(o, name, size);
	out_end_part(o);
}

static void print_name(struct out *o, const struct fathom_frame *frame)
{
	if (frame->function)
		print_symbol(o, frame->function, frame->function_size);
	else
		out_str(o, "??");
}

void print_function(struct out *o, const struct fathom_frame *frame)
{
	print_name(o, frame);
	print_place(o, frame, true);
}

void print_script_function(struct out *o, const struct fathom_frame *frame)
{
	print_name(o, frame);
	print_place(o, frame, frame->line != 0);
}

const struct fathom_frame *print_first_frame(const struct fathom_answer *a,
					     struct fathom_frame *of_symbol)
{
	if (a->frame)
		return a->frame;
	*of_symbol = (struct fathom_frame){ .function = a->symbol,
					    .linkage_name = a->linkage_name,
					    .function_size = a->symbol_size,
					    .linkage_size = a->linkage_size };
	return of_symbol;
}

void print_reason(struct out *o, uint8_t reason)
{
	out_char(o, ' ');
	out_begin_part(o, OUT_REASON);
	out_char(o, '(');
	out_str(o, fathom_reason_name((enum fathom_reason)reason));
	out_char(o, ')');
	out_end_part(o);
}

void print_innermost(struct out *o, const struct fathom_answer *a)
{
	struct fathom_frame of_symbol;
	const struct fathom_frame *frame = print_first_frame(a, &of_symbol);

	print_name(o, frame);
	if (frame->function) {
		out_char(o, '+');
		out_hex(o, offset_in(a));
	}
	print_place(o, frame, true);
	if (!frame->function && a->reason)
		print_reason(o, a->reason);
}

void print_inlined(struct out *o, const struct fathom_answer *a, const char *before,
		   const char *after, struct source_printer *s)
{
	const struct fathom_frame *frame = a->frame;

	while (frame && (frame = frame->outer) != NULL) {
		out_str(o, before);
		out_str(o, "inlined into ");
		print_function(o, frame);
		out_str(o, after);
		source_print(o, s, a->pc, frame);
	}
}

void print_text(struct out *o, const struct input *in, const struct fathom_answer *a,
		struct source_printer *s)
{
	if (!a) {
		out_text(o, in->text, in->size);
		out_str(o, " ??");
		print_reason(o, in->reason);
		out_char(o, '\n');
		return;
	}
	out_hex(o, a->pc.address);
	out_char(o, ' ');
	print_innermost(o, a);
	out_char(o, '\n');
	source_print(o, s, a->pc, a->frame);
	print_inlined(o, a, "  ", "\n", s);
}

static void json_frame(struct out *o, struct fathom_pc pc, const struct fathom_frame *frame,
		       struct source_printer *s)
{
	out_char(o, '{');
	json_text(o, "function", frame->function, frame->function_size);
	out_char(o, ',');
	json_text(o, "linkage_name", frame->linkage_name, frame->linkage_size);
	out_char(o, ',');
	json_text(o, "file", frame->file, frame->file_size);
	out_char(o, ',');
	json_count(o, "line", frame->line);
	out_char(o, ',');
	json_count(o, "column", frame->column);
	out_char(o, ',');
	json_count(o, "discriminator", frame->discriminator);
	out_str(o, frame->outer ? ",\"inlined\":true" : ",\"inlined\":false");
	source_json(o, s, pc, frame);
	out_char(o, '}');
}

static void json_frames(struct out *o, const struct fathom_answer *a, struct source_printer *s)
{
	struct fathom_frame of_symbol;
	const struct fathom_frame *frame = print_first_frame(a, &of_symbol);

	out_str(o, "\"frames\":[");
	if (a->frame || a->symbol)
		json_frame(o, a->pc, frame, s);
	while ((frame = frame->outer) != NULL) {
		out_char(o, ',');
		json_frame(o, a->pc, frame, s);
	}
	out_char(o, ']');
}

static void json_build_id(struct out *o, const struct fathom_module_info *module)
{
	json_key(o, "build_id");
	if (!module || !module->build_id) {
		out_str(o, "null");
		return;
	}
	out_char(o, '"');
	out_hex_bytes(o, module->build_id, module->build_id_size, "");
	out_char(o, '"');
}

/* Writes what tells which file the module is. */
static void json_module_id(struct out *o, const struct fathom_module_info *module)
{
	json_build_id(o, module);
	if (module && module->is_unverified)
		out_str(o, ",\"unverified\":true");
}

/* Writes the members of an answer that depend on the address. */
static void json_answer(struct out *o, const struct fathom_answer *a, struct source_printer *s)
{
	json_address_or_null(o, "module_address", a->module_address != FATHOM_NO_ADDRESS,
			     a->module_address);
	out_char(o, ',');
	json_text(o, "symbol", a->symbol, a->symbol_size);
	out_char(o, ',');
	json_text(o, "linkage_name", a->linkage_name, a->linkage_size);
	out_str(o, ",\"offset\":");
	if (a->symbol)
		out_dec(o, a->offset);
	else
		out_str(o, "null");
	out_char(o, ',');
	json_count(o, "size", a->symbol ? a->size : 0);
	out_char(o, ',');
	json_string(o, "source", fathom_source_name((enum fathom_source)a->source));
	out_char(o, ',');
	json_frames(o, a, s);
}

void print_members(struct out *o, const struct fathom_answer *a, struct source_printer *s)
{
	json_address(o, "address", a->pc.address);
	out_char(o, ',');
	json_string(o, "module", a->module ? a->module->path : NULL);
	out_char(o, ',');
	json_module_id(o, a->module);
	out_char(o, ',');
	json_answer(o, a, s);
	out_char(o, ',');
	json_string(o, "reason", fathom_reason_name((enum fathom_reason)a->reason));
}

void print_json(struct out *o, const struct input *in, const struct fathom_target_info *target,
		const struct fathom_answer *a, struct source_printer *s)
{
	const uint8_t reason = a ? a->reason : in->reason;
	const struct fathom_module_info of_target = {
		target->path, target->build_id, target->build_id_size, 0, { 0 }
	};
	const struct fathom_module_info *of_input =
		target->kind == FATHOM_TARGET_FILE ? &of_target : NULL;
	const struct fathom_module_info *module = a ? a->module : of_input;

	out_char(o, '{');
	json_key(o, "input");
	out_json(o, in->text, in->size);
	out_char(o, ',');
	json_address_or_null(o, "address", a, a ? a->pc.address : 0);
	out_char(o, ',');
	json_string(o, "module", module ? module->path : NULL);
	out_char(o, ',');
	json_module_id(o, module);
	out_char(o, ',');
	if (a)
		json_answer(o, a, s);
	else
		out_str(o, "\"module_address\":null,\"symbol\":null,\"linkage_name\":null,"
			   "\"offset\":null,\"size\":null,\"source\":null,\"frames\":[]");
	out_char(o, ',');
	json_string(o, "reason", fathom_reason_name((enum fathom_reason)reason));
}
