/* SPDX-License-Identifier: MIT */
/*
 * fathom jit-check: looks for instructions that write a register which code has promised to keep;
 * after "--", runs a program and checks the code that it makes (jit_check_run.c).
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common.h"
#include "cli/json.h"
#include "cli/out.h"
#include "cli/print.h"
#include "cli/code_range.h"
#include "cli/jit_check_run.h"
#include "cli/launch.h"

enum { OPT_REGISTER = OPT_VERB, OPT_DECIMAL, OPT_FRAMES_ONLY, OPT_NEED_RULES, OPT_SLICE, OPT_LOG };

static const struct verb_option options[] = {
	{ OPT_REGISTER, "register", "NAME", "the reserved register (rbp, ebp or x29)" },
	{ 'j', "section", "NAME", "addresses are offsets in this section" },
	{ OPT_DECIMAL, "decimal", NULL, "numbers without 0x are decimal" },
	{ OPT_FRAMES_ONLY, "frames-only", NULL, "of a PROGRAM, leave out registers" },
	{ OPT_NEED_RULES, "need-rules", NULL, "of a PROGRAM, all code must be described" },
	{ OPT_SLICE, "slice", "N", "steps of a thread before the others (1000)" },
	{ OPT_LOG, "log", "FILE", "of a PROGRAM, write to FILE, not to stderr" },
	{ 0, NULL, NULL, NULL },
};

static const char usage[] =
	"Usage: fathom jit-check [OPTION]... TARGET [FUNCTION|ADDRESS[..END]]...\n"
	"       fathom jit-check [OPTION]... -- PROGRAM [ARGUMENT]...\n"
	"Look for instructions that write a reserved register, the frame pointer unless\n"
	"another is named: the rule FATHOM_JIT_RESERVED of <fathom/jit.h> relies on there\n"
	"being none. Of each function the first is shown.\n"
	"\n"
	"Without FUNCTION, all sections of TARGET with code are looked at; it is a file\n"
	"then. Otherwise as for 'fathom disasm'.\n"
	"\n"
	"Behind '--', run PROGRAM, and stop at each instruction of the code that it makes\n"
	"and registers for GDB: CFA, return address and saved registers must be where its\n"
	"call frame information says. Of each function the first break is shown.\n";

static const struct verb_options jit_check_options = {
	.verb = "jit-check",
	.usage = usage,
	.options = options,
	.common = OPTIONS_TARGET | OPTIONS_JSON | OPTIONS_NO_CACHE | OPTIONS_CACHE_DIR |
		  OPTIONS_DEBUG | OPTIONS_EXE | OPTIONS_MEMORY | OPTIONS_THREADS,
	.end = "Exit status: 0 none writes it; 1 some do, or a FUNCTION is not there; 2 usage,\n"
	       "or TARGET cannot be read. Of a PROGRAM: 1 a promise is broken; 2 it cannot be\n"
	       "run; else its own.\n",
};

struct jit_check {
	struct common common;
	struct input_rules rules;
	struct fathom_target_info info;
	struct out out;
	struct range_reader ranges;
	size_t next_note;
	const char *name; /* of the register; NULL: the frame pointer */
	unsigned reg;     /* its number in encodings */
	bool broken;
	struct jit_check_run run; /* of a PROGRAM */
};

static void take_option(struct jit_check *v, int opt)
{
	switch (opt) {
	case OPT_REGISTER:
		v->name = optarg;
		break;
	case 'j':
		v->rules.section = optarg;
		break;
	case OPT_DECIMAL:
		v->rules.decimal = true;
		break;
	case OPT_FRAMES_ONLY:
		v->run.options.flags |= FATHOM_JIT_CHECK_FRAMES_ONLY;
		break;
	case OPT_NEED_RULES:
		v->run.needs_rules = true;
		break;
	case OPT_SLICE:
		v->run.options.slice = parse_count("--slice", optarg, UINT32_MAX);
		break;
	default:
		v->run.log = optarg;
	}
}

/* Refuses @option, if it was given. */
static void refuse(bool is_given, const char *option, const char *why)
{
	if (!is_given)
		return;
	complain(option, why, "leave it out");
	exit(EXIT_USAGE);
}

/* Refuses options of the other form. */
static void check_options(const struct jit_check *v, bool is_run)
{
	if (is_run) {
		refuse(v->name, "--register", "is not for a PROGRAM");
		refuse(v->rules.section, "--section", "is not for a PROGRAM");
		refuse(v->rules.decimal, "--decimal", "is not for a PROGRAM");
		return;
	}
	refuse(v->run.options.flags, "--frames-only", "is for a PROGRAM after --");
	refuse(v->run.needs_rules, "--need-rules", "is for a PROGRAM after --");
	refuse(v->run.options.slice, "--slice", "is for a PROGRAM after --");
	refuse(v->run.log, "--log", "is for a PROGRAM after --");
}

static void parse_options(struct jit_check *v, int argc, char **argv)
{
	const int end = launch_find(argc, argv);
	struct option_reader reader;
	int opt;

	option_reader_init(&reader, &jit_check_options);
	while ((opt = option_reader_next(&reader, &v->common, end, argv)) != -1)
		take_option(v, opt);
	check_options(v, end < argc);
	if (end == argc) {
		common_take_arguments(&v->common, "jit-check", argc - optind, argv + optind);
		return;
	}
	v->run.argv = launch_take("jit-check", optind, end, argc, argv);
}

/* Returns the number of register @name in encodings; -1 if there is none. */
static int number_of(const char *name)
{
	static const char *const x86[] = { "ax", "cx", "dx", "bx", "sp", "bp", "si", "di" };
	char *end;
	long n;

	if ((name[0] == 'r' || name[0] == 'e') && name[1])
		for (size_t i = 0; i < sizeof x86 / sizeof *x86; i++)
			if (!strcmp(name + 1, x86[i]))
				return (int)i;
	if ((name[0] != 'r' && name[0] != 'x') || name[1] < '0' || name[1] > '9')
		return -1;
	n = strtol(name + 1, &end, 10);
	if (*end || (name[0] == 'r' ? n < 8 || n > 15 : n > 30))
		return -1;
	return (int)n;
}

/* Chooses the register: that of the machine's ABI, unless one is named. */
static void choose_register(struct jit_check *v)
{
	int number;

	if (!v->name)
		v->name = v->info.elf_machine == EM_AARCH64 ? "x29"
			  : v->info.elf_machine == EM_386   ? "ebp"
							    : "rbp";
	number = number_of(v->name);
	if (number < 0) {
		complain("--register", "is no general register of x86 or aarch64",
			 "rbp, r12 or x29");
		exit(EXIT_USAGE);
	}
	v->reg = (unsigned)number;
}

static const char *why(const struct fathom_instruction *i)
{
	return i->flags & FATHOM_INSTRUCTION_BAD ? "cannot be decoded" : "writes it";
}

static void print_text_of(struct jit_check *v, const struct fathom_instruction *i)
{
	struct out *o = &v->out;

	out_hex(o, range_shown(&v->ranges, i->address));
	out_char(o, ' ');
	if (i->frame && i->frame->function) {
		out_text(o, i->frame->function, strlen(i->frame->function));
		out_str(o, "+");
		out_hex(o, i->function_offset);
		out_char(o, ' ');
	}
	out_text(o, i->text, i->text_size);
	out_str(o, " (");
	out_str(o, why(i));
	out_str(o, ")\n");
}

static void print_json_of(struct jit_check *v, const struct fathom_instruction *i)
{
	struct out *o = &v->out;

	out_char(o, '{');
	json_address(o, "address", range_shown(&v->ranges, i->address));
	out_char(o, ',');
	json_string(o, "function", i->frame ? i->frame->function : NULL);
	out_char(o, ',');
	json_address(o, "offset", i->function_offset);
	out_str(o, ",\"bytes\":\"");
	out_hex_bytes(o, i->bytes, i->size, "");
	out_str(o, "\",");
	json_string(o, "text", i->text);
	out_char(o, ',');
	json_string(o, "register", v->name);
	out_char(o, ',');
	json_string(o, "reason", why(i));
	out_str(o, "}\n");
}

static int show(void *data, const struct fathom_instruction *i)
{
	struct jit_check *v = data;

	if (v->common.json)
		print_json_of(v, i);
	else
		print_text_of(v, i);
	return v->out.failed;
}

/* Prints why @text, or its rest from @address on, cannot be looked at. */
static void print_unanswered(struct jit_check *v, const char *text, const uint64_t *address,
			     uint8_t reason)
{
	struct out *o = &v->out;

	v->broken = true;
	if (v->common.json) {
		out_char(o, '{');
		json_address_or_null(o, "address", address, address ? *address : 0);
		out_str(o, ",\"function\":null,\"offset\":null,\"bytes\":null,\"text\":null,");
		json_string(o, "register", v->name);
		out_str(o, ",\"input\":");
		out_json(o, text, strlen(text));
		out_char(o, ',');
		json_string(o, "reason", fathom_reason_name((enum fathom_reason)reason));
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

/* Looks at @r, given as @text. */
static void look_at_range(struct jit_check *v, const char *text, struct range r)
{
	const struct fathom_jit_scan_options o = { .size = sizeof o,
						   .reg = v->reg,
						   .max_instructions = r.most,
						   .found = show,
						   .data = v };
	struct fathom_jit_scan_result result = { .size = sizeof result };
	struct fathom_errinfo info;
	fathom_err err = fathom_jit_check_scan(v->rules.target, &o, r.start, r.end, &result, &info);

	if (err && err != FATHOM_E_NOT_FOUND) {
		out_flush(&v->out);
		complain_error(&info);
		exit(EXIT_USAGE);
	}
	v->broken |= result.found != 0;
	if (err || (result.next < r.end && !r.most && !v->out.failed)) {
		const uint64_t address = range_shown(&v->ranges, err ? r.start : result.next);

		print_unanswered(v, text, &address, FATHOM_REASON_UNMAPPED);
	}
}

static void look_at_argument(struct jit_check *v, const char *text)
{
	struct range r;
	const uint8_t reason = range_take(&v->ranges, text, &v->out, &r);

	if (!reason) {
		look_at_range(v, text, r);
		return;
	}
	print_unanswered(v, text, NULL, reason);
	out_flush(&v->out);
	range_complain(&v->ranges);
}

/* All sections with instructions. */
static void look_at_sections(struct jit_check *v)
{
	struct fathom_section_info s;

	if (v->info.kind != FATHOM_TARGET_FILE)
		complain_lacking("jit-check", "no FUNCTION is given");
	for (size_t i = 1; !fathom_target_section(v->rules.target, i, &s) && !v->out.failed; i++)
		if (s.flags & SHF_EXECINSTR && s.type == SHT_PROGBITS && s.size)
			look_at_range(v, s.name,
				      (struct range){ s.address, s.address + s.size, 0 });
}

static int answer_all(void *verb, struct fathom_target *target)
{
	struct jit_check *v = verb;

	v->rules.target = target;
	fathom_target_get_info(target, &v->info);
	input_rules_check(&v->rules, &v->info);
	choose_register(v);
	out_init(&v->out);
	common_print_notes(target, &v->next_note);
	range_reader_init(&v->ranges, &v->rules, v->common.n_arguments, v->common.arguments);
	if (!v->common.n_arguments)
		look_at_sections(v);
	for (int i = 0; i < v->common.n_arguments && !v->out.failed; i++)
		look_at_argument(v, v->common.arguments[i]);
	out_deinit(&v->out);
	common_print_notes(target, &v->next_note);
	range_reader_deinit(&v->ranges);
	return common_status(&v->out, v->broken);
}

int verb_jit_check(int argc, char **argv)
{
	struct jit_check v = { .run = { .argv = NULL } };

	common_init(&v.common);
	parse_options(&v, argc, argv);
	if (v.run.argv)
		return jit_check_run(&v.common, &v.run);
	return common_run(&v.common, answer_all, &v);
}
