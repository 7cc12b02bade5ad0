/* SPDX-License-Identifier: MIT */
/* Annotated functions as JSON Lines. */
#include <fathom/source.h>
#include <string.h>

#include "cli/json.h"
#include "cli/report_annotate.h"

static void begin(struct out *o, const char *type, size_t function)
{
	out_char(o, '{');
	json_string(o, "type", type);
	json_member_number(o, "function", function);
}

static void put_weight(struct out *o, const struct fathom_annotated_weight *w)
{
	json_member_number(o, "self", w->self);
	json_member_number(o, "inlined", w->inlined);
	json_member_number(o, "total", w->total);
	json_member_number(o, "self_samples", w->self_samples);
	json_member_number(o, "inlined_samples", w->inlined_samples);
	json_member_number(o, "total_samples", w->total_samples);
}

static void put_function(struct out *o, size_t number, const struct fathom_annotated_function *f)
{
	begin(o, "annotated", number);
	json_member_string(o, "name", strcmp(f->name, "??") == 0 ? NULL : f->name);
	json_member_string(o, "linkage_name", f->linkage_name);
	json_member_string(o, "module", f->module);
	put_weight(o, &f->weight);
	json_member_number(o, "elsewhere", f->elsewhere.self + f->elsewhere.inlined);
	json_member_number(o, "no_line", f->no_line.self + f->no_line.inlined);
	json_member_string(o, "reason", f->why);
	out_str(o, "}\n");
}

static void put_code(struct out *o, size_t function, size_t number,
		     const struct fathom_annotated_code *c)
{
	begin(o, "code", function);
	json_member_number(o, "code", number);
	json_member_string(o, "name", c->name);
	json_member_string(o, "module", c->module);
	out_char(o, ',');
	json_address(o, "address", c->start);
	json_member_count(o, "size", c->size);
	json_member_truth(o, "inlined_here", c->is_inlined_here);
	json_member_number(o, "instructions", c->n);
	json_member_number(o, "elsewhere", c->elsewhere.self + c->elsewhere.inlined);
	json_member_string(o, "reason", c->why);
	out_str(o, "}\n");
}

static void put_line(struct out *o, size_t function, const struct fathom_annotated_line *l)
{
	const char *why = l->text ? NULL : l->file->why;

	begin(o, "source", function);
	json_member_string(o, "file", l->file->path);
	json_member_number(o, "line", l->line);
	json_member_string(o, "inlined_function", l->function);
	out_char(o, ',');
	json_key(o, "text");
	if (l->text)
		out_json(o, l->text, l->text_size);
	else
		out_str(o, "null");
	json_member_truth(o, "has_code", l->has_code);
	put_weight(o, &l->weight);
	json_member_string(o, "source_file", l->text ? l->file->found : NULL);
	json_member_string(
		o, "source_origin",
		l->text ? fathom_text_origin_name((enum fathom_text_origin)l->file->origin) : NULL);
	json_member_truth(o, "source_proven", l->text && l->file->is_proven);
	json_member_truth(o, "source_newer", l->text && l->file->is_newer);
	json_member_string(o, "source_reason", why);
	out_str(o, "}\n");
}

static const struct fathom_annotated_line *line_at(const struct fathom_annotated_function *f,
						   uint32_t number)
{
	return number == FATHOM_ANNOTATED_NONE ? NULL : &f->lines[number];
}

static void put_instruction(struct out *o, size_t function,
			    const struct fathom_annotated_function *f,
			    const struct fathom_annotated_instruction *i)
{
	const struct fathom_annotated_line *line = line_at(f, i->line);
	const struct fathom_annotated_line *inner = line_at(f, i->inlined_line);
	const bool jumps = i->jump != FATHOM_ANNOTATED_NONE;

	begin(o, "instruction", function);
	json_member_number(o, "code", i->code);
	out_char(o, ',');
	json_address(o, "address", i->address);
	out_str(o, ",\"bytes\":\"");
	out_hex_bytes(o, i->bytes, i->size, "");
	out_char(o, '"');
	json_member_string(o, "text", i->text);
	out_char(o, ',');
	json_address_or_null(o, "target", i->target, i->target);
	out_char(o, ',');
	json_address_or_null(o, "jump", jumps, jumps ? f->instructions[i->jump].address : 0);
	json_member_string(o, "file", line ? line->file->path : NULL);
	json_member_count(o, "line", line ? line->line : 0);
	json_member_string(o, "inlined_function", inner ? inner->function : NULL);
	json_member_string(o, "inlined_file", inner ? inner->file->path : NULL);
	json_member_count(o, "inlined_line", inner ? inner->line : 0);
	json_member_truth(o, "outside", i->is_outside);
	put_weight(o, &i->weight);
	out_str(o, "}\n");
}

void annotate_json(struct out *o, size_t number, const struct fathom_annotated_function *f)
{
	put_function(o, number, f);
	for (size_t i = 0; i < f->n_codes; i++)
		put_code(o, number, i, &f->codes[i]);
	for (size_t i = 0; i < f->n_lines && !o->failed; i++)
		put_line(o, number, &f->lines[i]);
	for (size_t i = 0; i < f->n_instructions && !o->failed; i++)
		put_instruction(o, number, f, &f->instructions[i]);
}
