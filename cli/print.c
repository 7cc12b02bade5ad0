/* SPDX-License-Identifier: MIT */
#include "cli/print.h"

#include <string.h>

#include "cli/json.h"

/* The bytes from where @frame's code starts to the address that is looked up. */
static uint64_t offset_in(const struct fathom_answer *a, const struct fathom_frame *frame,
			  bool innermost)
{
	/* Of an inlined call, from where this copy of it starts; else from the symbol. */
	if (innermost && frame && frame->outer != FATHOM_NONE && a->address >= frame->start)
		return a->address - frame->start;
	return a->offset;
}

static void print_place(struct out *o, const struct fathom_answers *answers,
			const struct fathom_frame *frame)
{
	const struct fathom_source_file *file =
		frame ? fathom_answers_file(answers, frame->file) : NULL;

	if (!file)
		return;
	out_char(o, ' ');
	out_text(o, file->path, file->path_size);
	out_char(o, ':');
	out_dec(o, frame->line);
	if (frame->column) {
		out_char(o, ':');
		out_dec(o, frame->column);
	}
}

static void print_name(struct out *o, const struct fathom_function *f)
{
	if (f)
		out_text(o, f->name, f->name_size);
	else
		out_str(o, "??");
}

static void print_reason(struct out *o, uint8_t reason)
{
	out_str(o, " (");
	out_str(o, fathom_reason_name((enum fathom_reason)reason));
	out_char(o, ')');
}

void print_text(struct out *o, const struct input *in, const struct fathom_answers *answers,
		const struct fathom_answer *a)
{
	const struct fathom_frame *frame = a ? fathom_answers_frame(answers, a->frame) : NULL;
	const struct fathom_function *f;

	if (!a) {
		out_text(o, in->text, in->size);
		out_str(o, " ??");
		print_reason(o, in->reason);
		out_char(o, '\n');
		return;
	}
	f = fathom_answers_function(answers, frame ? frame->function : a->symbol);
	out_hex(o, a->address);
	out_char(o, ' ');
	print_name(o, f);
	if (f) {
		out_char(o, '+');
		out_hex(o, offset_in(a, frame, true));
	}
	print_place(o, answers, frame);
	if (!f && a->reason)
		print_reason(o, a->reason);
	out_char(o, '\n');
	while (frame && (frame = fathom_answers_frame(answers, frame->outer)) != NULL) {
		out_str(o, "  inlined into ");
		print_name(o, fathom_answers_function(answers, frame->function));
		print_place(o, answers, frame);
		out_char(o, '\n');
	}
}

static void json_names(struct out *o, const char *key, const struct fathom_function *f)
{
	json_text(o, key, f ? f->name : NULL, f ? f->name_size : 0);
	out_char(o, ',');
	json_string(o, "linkage_name", f ? f->linkage_name : NULL);
}

static void json_frame(struct out *o, const struct fathom_answers *answers,
		       const struct fathom_function *f, const struct fathom_frame *frame)
{
	const struct fathom_source_file *file =
		frame ? fathom_answers_file(answers, frame->file) : NULL;

	out_char(o, '{');
	json_names(o, "function", f);
	out_char(o, ',');
	json_text(o, "file", file ? file->path : NULL, file ? file->path_size : 0);
	out_char(o, ',');
	json_count(o, "line", frame ? frame->line : 0);
	out_char(o, ',');
	json_count(o, "column", frame ? frame->column : 0);
	out_char(o, ',');
	json_count(o, "discriminator", frame ? frame->discriminator : 0);
	out_str(o, frame && frame->outer != FATHOM_NONE ? ",\"inlined\":true}"
							: ",\"inlined\":false}");
}

static void json_frames(struct out *o, const struct fathom_answers *answers,
			const struct fathom_answer *a)
{
	const struct fathom_frame *frame = fathom_answers_frame(answers, a->frame);
	bool first = true;

	out_str(o, "\"frames\":[");
	if (!frame && a->symbol != FATHOM_NONE)
		json_frame(o, answers, fathom_answers_function(answers, a->symbol), NULL);
	for (; frame; frame = fathom_answers_frame(answers, frame->outer)) {
		if (!first)
			out_char(o, ',');
		first = false;
		json_frame(o, answers, fathom_answers_function(answers, frame->function), frame);
	}
	out_char(o, ']');
}

static void json_build_id(struct out *o, const struct fathom_module_info *module)
{
	static const char digits[] = "0123456789abcdef";

	json_key(o, "build_id");
	if (!module || !module->build_id) {
		out_str(o, "null");
		return;
	}
	out_char(o, '"');
	for (uint32_t i = 0; i < module->build_id_size; i++) {
		out_char(o, digits[module->build_id[i] >> 4]);
		out_char(o, digits[module->build_id[i] & 15]);
	}
	out_char(o, '"');
}

/* The part of an answer that depends on the address; @a is NULL when the input was none. */
static void json_answer(struct out *o, const struct fathom_answers *answers,
			const struct fathom_answer *a)
{
	const struct fathom_function *f = fathom_answers_function(answers, a->symbol);

	if (a->module == FATHOM_NO_MODULE || a->module_address == FATHOM_NO_ADDRESS)
		out_str(o, "\"module_address\":null");
	else
		json_address(o, "module_address", a->module_address);
	out_char(o, ',');
	json_names(o, "symbol", f);
	out_str(o, ",\"offset\":");
	if (f)
		out_dec(o, a->offset);
	else
		out_str(o, "null");
	out_char(o, ',');
	json_count(o, "size", f ? a->size : 0);
	out_char(o, ',');
	json_string(o, "source", fathom_source_name((enum fathom_source)a->source));
	out_char(o, ',');
	json_frames(o, answers, a);
}

void print_json(struct out *o, const struct input *in, const struct fathom_target_info *target,
		const struct fathom_answers *answers, const struct fathom_answer *a)
{
	const uint8_t reason = a ? a->reason : in->reason;
	const struct fathom_module_info of_target = { target->path, target->build_id,
						      target->build_id_size, 0 };
	const struct fathom_module_info *of_input =
		target->kind == FATHOM_TARGET_FILE ? &of_target : NULL;
	const struct fathom_module_info *module =
		a ? fathom_answers_module(answers, a->module) : of_input;

	out_char(o, '{');
	json_key(o, "input");
	out_json(o, in->text, in->size);
	out_char(o, ',');
	if (a)
		json_address(o, "address", a->address);
	else
		out_str(o, "\"address\":null");
	out_char(o, ',');
	json_string(o, "module", module ? module->path : NULL);
	out_char(o, ',');
	json_build_id(o, module);
	out_char(o, ',');
	if (a)
		json_answer(o, answers, a);
	else
		out_str(o, "\"module_address\":null,\"symbol\":null,\"linkage_name\":null,"
			   "\"offset\":null,\"size\":null,\"source\":null,\"frames\":[]");
	out_char(o, ',');
	json_string(o, "reason", fathom_reason_name((enum fathom_reason)reason));
	out_str(o, "}\n");
}
