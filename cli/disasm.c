/* SPDX-License-Identifier: MIT */
/* fathom disasm: disassembles functions and ranges. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common.h"
#include "cli/input.h"
#include "cli/json.h"
#include "cli/out.h"
#include "cli/print.h"
#include "cli/code_range.h"
#include "cli/source_printer.h"

enum {
	OPT_INTEL = OPT_VERB,
	OPT_BYTES,
	OPT_NO_LINES,
	OPT_NO_DEMANGLE,
	OPT_DECIMAL,
};

static const struct verb_option options[] = {
	{ OPT_INTEL, "intel", NULL, "Intel syntax" },
	{ OPT_BYTES, "bytes", NULL, "show the bytes of instructions" },
	{ OPT_NO_LINES, "no-lines", NULL, "no files and lines" },
	{ OPT_NO_DEMANGLE, "no-demangle", NULL, "print names as they are linked" },
	{ 'j', "section", "NAME", "addresses are offsets in this section" },
	{ OPT_DECIMAL, "decimal", NULL, "numbers without 0x are decimal" },
	{ 0, NULL, NULL, NULL },
};

static const char usage[] =
	"Usage: fathom disasm [OPTION]... TARGET FUNCTION|ADDRESS[..END]...\n"
	"Disassemble functions of TARGET: the path of an ELF file or core, the number of\n"
	"a process, or the word kernel; with a name for every address that the code\n"
	"refers to.\n"
	"\n"
	"An ADDRESS alone stands for the function around it, or 16 instructions where\n"
	"there is none. Addresses are written as for 'fathom addr'.\n";

static const struct verb_options disasm_options = {
	.verb = "disasm",
	.usage = usage,
	.options = options,
	.common = OPTIONS_TARGET | OPTIONS_JSON | OPTIONS_NO_CACHE | OPTIONS_CACHE_DIR |
		  OPTIONS_DEBUG | OPTIONS_EXE | OPTIONS_MEMORY | OPTIONS_THREADS | OPTIONS_COLOR |
		  OPTIONS_SOURCE_LINE,
	.end = "Exit status: 0 all disassembled; 1 some not, each says why; 2 usage, or TARGET\n"
	       "cannot be read.\n",
};

/* Instructions disassembled and printed at a time. */
#define AT_A_TIME 65536
struct disasm {
	struct common common;
	struct fathom_disasm_options options;
	struct input_rules rules;
	struct fathom_target_info info;
	struct out out;
	struct range_reader ranges;
	size_t next_note;
	bool bytes;
	bool unanswered;
	/* last values printed in the current range */
	char *function;
	char *file;
	uint32_t line;
	bool lined; /* print a column of lines */
	struct source_printer source;
};

static void parse_options(struct disasm *v, int argc, char **argv)
{
	struct option_reader reader;
	int opt;

	option_reader_init(&reader, &disasm_options);
	while ((opt = option_reader_next(&reader, &v->common, argc, argv)) != -1) {
		switch (opt) {
		case OPT_INTEL:
			v->options.flags |= FATHOM_DISASM_INTEL;
			break;
		case OPT_BYTES:
			v->bytes = true;
			break;
		case OPT_NO_LINES:
			v->options.flags |= FATHOM_DISASM_NO_LINES;
			break;
		case OPT_NO_DEMANGLE:
			v->options.flags |= FATHOM_DISASM_NO_DEMANGLE;
			break;
		case 'j':
			v->rules.section = optarg;
			break;
		case OPT_DECIMAL:
			v->rules.decimal = true;
			break;
		}
	}
	common_take_arguments(&v->common, "disasm", argc - optind, argv + optind);
	if (!v->common.n_arguments)
		complain_lacking("disasm", "no FUNCTION is given");
	common_check_source(&v->common, v->options.flags & FATHOM_DISASM_NO_LINES,
			    "does not go with --no-lines, which leaves lines out");
}

static void out_pad(struct out *o, size_t from, size_t width)
{
	while (o->n - from < width)
		out_char(o, ' ');
}

/* Returns whether @text equals *@last, and sets *@last to it. */
static bool is_last(char **last, const char *text)
{
	if (*last ? text && strcmp(*last, text) == 0 : !text)
		return true;
	free(*last);
	*last = text ? must(strdup(text)) : NULL;
	return false;
}

/* Widths of the columns of lines and of bytes. */
enum { LINE_WIDTH = 6, BYTES_WIDTH = 22 };

/* Returns the name of @i's physical function; NULL if not known. */
static const char *function_of(const struct fathom_instruction *i)
{
	const struct fathom_frame *frame = i->frame;

	while (frame && frame->outer)
		frame = frame->outer;
	return frame ? frame->function : NULL;
}

static const char *file_of(const struct fathom_instruction *i)
{
	return i->frame ? i->frame->file : NULL;
}

static uint32_t line_of(const struct fathom_instruction *i)
{
	return file_of(i) ? i->frame->line : 0;
}

static struct fathom_pc pc_of(const struct fathom_instruction *i)
{
	return (struct fathom_pc){ .address = i->address };
}

/* Parts of an instruction's place that differ from those of the one before it. */
struct begun {
	bool function;
	bool file;
	bool line;
};

/* Notes the place of @i, the next instruction, and returns what begins with it. */
static struct begun note_place(struct disasm *v, const struct fathom_instruction *i)
{
	const char *function = function_of(i);
	const char *file = file_of(i);
	const uint32_t line = line_of(i);
	const bool begins = function && !i->function_offset;
	struct begun begun = { .function = false };

	/* Padding between functions gets no heading. Neighbours may have the same name. */
	if (!(i->flags & FATHOM_INSTRUCTION_PADDING && !function) &&
	    (!is_last(&v->function, function ? function : "??") || begins)) {
		begun.function = true;
		(void)is_last(&v->file, NULL);
		v->line = 0;
	}
	if (file && !is_last(&v->file, file)) {
		begun.file = true;
		v->line = 0;
	}
	begun.line = line && line != v->line;
	v->line = line;
	return begun;
}

/* Prints the headings above an instruction: the function, the source file, lines of it. */
static void print_heads(struct disasm *v, const struct fathom_instruction *i, struct begun begun)
{
	struct out *o = &v->out;

	if (begun.function) {
		const char *function = function_of(i);

		if (function)
			print_symbol(o, function, strlen(function));
		else
			out_text(o, v->function, strlen(v->function));
		if (function && i->function_offset) {
			out_char(o, '+');
			out_hex(o, i->function_offset);
		}
		out_str(o, ":\n");
	}
	if (begun.file) {
		out_str(o, "  ");
		out_begin_part(o, OUT_FILE);
		out_text(o, v->file, strlen(v->file));
		out_end_part(o);
		out_char(o, '\n');
	}
	if (begun.line)
		source_print(o, &v->source, pc_of(i), i->frame);
}

/* Prints the column of lines, with the line if it differs from the previous instruction's. */
static void print_line(struct disasm *v, struct begun begun)
{
	char digits[FATHOM_NUMBER_SIZE];
	const size_t start = v->out.n;
	const size_t n = begun.line ? fathom_format_dec(digits, v->line) : 0;

	out_pad(&v->out, start, n < LINE_WIDTH ? LINE_WIDTH - n : 0);
	out_bytes(&v->out, digits, n);
}

/* Prints the text of @i, and in colour the name in it. */
static void print_instruction(struct out *o, const struct fathom_instruction *i)
{
	const size_t size = i->target_name ? strlen(i->target_name) : 0;
	const char *name = size ? memmem(i->text, i->text_size, i->target_name, size) : NULL;
	const size_t before = name ? (size_t)(name - i->text) : 0;

	if (name) {
		out_text(o, i->text, before);
		print_symbol(o, name, size);
		out_text(o, name + size, i->text_size - before - size);
	} else {
		out_text(o, i->text, i->text_size);
	}
}

static void print_text_of(struct disasm *v, const struct fathom_instruction *i)
{
	const struct begun begun = note_place(v, i);
	struct out *o = &v->out;
	size_t start;

	print_heads(v, i, begun);
	/* Columns are counted in the buffer: it must not be flushed within a line. */
	if (o->cap - o->n < 8192)
		out_flush(o);
	if (v->lined)
		print_line(v, begun);
	out_str(o, "  ");
	out_hex(o, range_shown(&v->ranges, i->address));
	out_str(o, "  ");
	if (v->bytes) {
		if (o->cap - o->n < 256)
			out_flush(o);
		start = o->n;
		out_hex_bytes(o, i->bytes, i->size, " ");
		out_char(o, ' ');
		out_pad(o, start, BYTES_WIDTH);
	}
	print_instruction(o, i);
	out_char(o, '\n');
}

/* Writes NAME, NAME+0xOFFSET or, just before it, NAME-0xOFFSET as a JSON string. */
static void json_target(struct out *o, const struct fathom_instruction *i)
{
	const bool before = (int64_t)i->target_offset < 0;
	char offset[FATHOM_NUMBER_SIZE + 1];
	size_t n = 0;
	char *name;

	if (!i->target_name || !i->target_offset) {
		json_string(o, "target_name", i->target_name);
		return;
	}
	offset[0] = before ? '-' : '+';
	n = 1 + fathom_format_hex(offset + 1, before ? 0 - i->target_offset : i->target_offset);
	name = must(malloc(strlen(i->target_name) + n + 1));
	memcpy(name, i->target_name, strlen(i->target_name));
	memcpy(name + strlen(i->target_name), offset, n);
	json_text(o, "target_name", name, strlen(i->target_name) + n);
	free(name);
}

static void print_json_of(struct disasm *v, const struct fathom_instruction *i)
{
	const struct begun begun = note_place(v, i);
	struct out *o = &v->out;

	out_char(o, '{');
	json_address(o, "address", range_shown(&v->ranges, i->address));
	out_str(o, ",\"bytes\":\"");
	out_hex_bytes(o, i->bytes, i->size, "");
	out_str(o, "\",");
	json_string(o, "text", i->text);
	out_char(o, ',');
	json_address_or_null(o, "target", i->flags & FATHOM_INSTRUCTION_TARGET,
			     range_shown(&v->ranges, i->target));
	out_char(o, ',');
	json_target(o, i);
	out_char(o, ',');
	json_string(o, "file", file_of(i));
	out_char(o, ',');
	json_count(o, "line", line_of(i));
	if (begun.line)
		source_json(o, &v->source, pc_of(i), i->frame);
	out_str(o, "}\n");
}

static void print_all(struct disasm *v, const struct fathom_disasm *d)
{
	const size_t n = fathom_disasm_count(d);

	for (size_t i = 0; i < n && !v->lined; i++)
		v->lined = line_of(fathom_disasm_get(d, i)) != 0;
	for (size_t i = 0; i < n && !v->out.failed; i++) {
		if (v->common.json)
			print_json_of(v, fathom_disasm_get(d, i));
		else
			print_text_of(v, fathom_disasm_get(d, i));
	}
}

/* Prints why the range, or its rest from @address on, cannot be disassembled. */
static void print_unanswered(struct disasm *v, const char *text, const uint64_t *address,
			     uint8_t reason)
{
	struct out *o = &v->out;

	v->unanswered = true;
	if (v->common.json) {
		out_char(o, '{');
		json_address_or_null(o, "address", address, address ? *address : 0);
		out_str(o, ",\"bytes\":null,\"text\":null,\"target\":null,\"target_name\":null,"
			   "\"file\":null,\"line\":null,\"input\":");
		out_json(o, text, strlen(text));
		out_char(o, ',');
		json_string(o, "reason", fathom_reason_name((enum fathom_reason)reason));
		if (reason == FATHOM_REASON_NO_SUCH_SYMBOL)
			range_copies_json(&v->ranges, o);
		out_str(o, "}\n");
		return;
	}
	if (address)
		out_hex(o, *address);
	else
		out_text(o, text, strlen(text));
	out_str(o, " ??");
	print_reason(o, reason);
	out_char(o, '\n');
}

/* Disassembles one batch of @r and moves its start; returns false when there is no more. */
static bool print_stretch(struct disasm *v, const char *text, struct range *r)
{
	struct fathom_disasm *d;
	struct fathom_errinfo info;
	const fathom_err err =
		fathom_disassemble(v->rules.target, &v->options, r->start, r->end, &d, &info);
	bool more;

	if (err == FATHOM_E_NOT_FOUND) {
		const uint64_t address = range_shown(&v->ranges, r->start);

		print_unanswered(v, text, &address, FATHOM_REASON_UNMAPPED);
		return false;
	}
	if (err) {
		out_flush(&v->out);
		complain_error(&info);
		exit(EXIT_USAGE);
	}
	print_all(v, d);
	r->start = fathom_disasm_next(d);
	more = !r->most && r->start < r->end && fathom_disasm_count(d) && !v->out.failed;
	fathom_disasm_free(d);
	return more;
}

static void answer(struct disasm *v, const char *text)
{
	struct range r;
	const uint8_t reason = range_take(&v->ranges, text, &v->out, &r);

	if (reason) {
		print_unanswered(v, text, NULL, reason);
		out_flush(&v->out);
		range_complain(&v->ranges);
		return;
	}
	v->options.max_instructions = r.most ? r.most : AT_A_TIME;
	(void)is_last(&v->function, NULL);
	(void)is_last(&v->file, NULL);
	v->line = 0;
	v->lined = false;
	while (print_stretch(v, text, &r))
		;
}

static int answer_all(void *verb, struct fathom_target *target)
{
	struct disasm *v = verb;

	v->rules.target = target;
	fathom_target_get_info(target, &v->info);
	input_rules_check(&v->rules, &v->info);
	common_out_init(&v->common, &v->out);
	common_print_notes(v->rules.target, &v->next_note);
	range_reader_init(&v->ranges, &v->rules, v->common.n_arguments, v->common.arguments);
	source_init(&v->source, &v->common, target, "  ; ");
	v->source.is_terse = true;
	for (int i = 0; i < v->common.n_arguments && !v->out.failed; i++) {
		if (i && !v->common.json)
			out_char(&v->out, '\n');
		answer(v, v->common.arguments[i]);
	}
	out_deinit(&v->out);
	common_print_notes(v->rules.target, &v->next_note);
	free(v->function);
	free(v->file);
	source_deinit(&v->source);
	range_reader_deinit(&v->ranges);
	return common_status(&v->out, v->unanswered);
}

int verb_disasm(int argc, char **argv)
{
	struct disasm v = { .options = { .size = sizeof v.options } };

	common_init(&v.common);
	v.common.shows_progress = true;
	parse_options(&v, argc, argv);
	return common_run(&v.common, answer_all, &v);
}
