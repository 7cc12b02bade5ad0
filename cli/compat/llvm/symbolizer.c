/* SPDX-License-Identifier: MIT */
/*
 * fathom llvm-symbolizer and llvm-addr2line: a drop-in for both tools of LLVM 19, for the
 * sanitizers, perf, pprof and people.
 *
 * All available requests are read together, so that the addresses of each module become one batch.
 * Answers come in the order of the requests and are flushed before waiting for more.
 * docs/reports/oracle-llvm-symbolizer.md lists the differences from the real tools.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/common.h"
#include "cli/compat/llvm/opened.h"
#include "cli/compat/llvm/styles.h"
#include "cli/stream.h"

/* Most requests answered together, to bound the memory. */
#define REQUESTS_TOGETHER (1u << 19)

struct request {
	struct llvm_request r;
	struct llvm_text line;
	struct llvm_module *module; /* NULL: none is named */
	size_t index;               /* index in the module's code or data lookups */
};

struct symbolizer {
	struct llvm_options options;
	const char *name; /* of the tool, for messages */
	struct fathom *session;
	uint32_t flags; /* of fathom_symbolize() */
	struct out out;
	struct llvm_printer printer;
	struct llvm_modules modules;
	struct request *requests;
	size_t n;
	size_t cap;
	struct llvm_place *places;
	size_t cap_places;
};

/* Prints "TOOL: error: 'WHAT': WHY". */
static void complain_as_llvm(struct symbolizer *s, struct llvm_text what, const char *why)
{
	fprintf(stderr, "%s: error: ", s->name);
	if (what.size) {
		putc('\'', stderr);
		(void)!fwrite(what.data, 1, strnlen(what.data, what.size), stderr);
		fputs("': ", stderr);
	}
	fprintf(stderr, "%s\n", why);
}

/* Requests. */

static size_t add_address(struct llvm_lookup *l, uint64_t address)
{
	if (l->n == l->cap) {
		l->cap = l->cap ? 2 * l->cap : 64;
		l->addresses = must(realloc(l->addresses, l->cap * sizeof *l->addresses));
	}
	l->addresses[l->n] = address;
	return l->n++;
}

static void answer_requests(struct symbolizer *s);

/*
 * Returns the module that the request names; first answers pending requests if there is no room for
 * it.
 */
static struct llvm_module *module_of(struct symbolizer *s, const struct llvm_request *r)
{
	const char *fixed = s->options.file ? s->options.file : s->options.build_id;
	const bool own = r->module.size != 0;
	const struct llvm_text name =
		own ? r->module : (struct llvm_text){ fixed, fixed ? strlen(fixed) : 0 };
	const bool is_build_id = own ? r->is_build_id : !s->options.file;
	struct llvm_module *m;

	if (!fixed && !own)
		return NULL;
	m = llvm_modules_find(&s->modules, name, is_build_id);
	if (m)
		return m;
	if (llvm_modules_are_full(&s->modules))
		answer_requests(s);
	return llvm_modules_open(&s->modules, name, is_build_id);
}

static void add_request(struct symbolizer *s, const char *line, size_t size)
{
	const struct llvm_request_rules rules = { .has_file =
							  s->options.file || s->options.build_id,
						  .is_hexadecimal = s->options.is_addr2line };
	struct request q = { .line = { line, size } };
	uint64_t address;

	llvm_request_parse(line, size, &rules, &q.r);
	if (q.r.command != LLVM_INVALID && q.r.command != LLVM_EMPTY)
		q.module = module_of(s, &q.r);
	if (q.module && q.module->target) {
		address = llvm_module_address(q.module, q.r.address - s->options.adjust_vma,
					      q.r.command == LLVM_DATA);
		if (q.r.command == LLVM_CODE)
			q.index = add_address(&q.module->code, address);
		else if (q.r.command == LLVM_DATA)
			q.index = add_address(&q.module->data, address);
	}
	if (s->n == s->cap) {
		s->cap = s->cap ? 2 * s->cap : 1024;
		s->requests = must(realloc(s->requests, s->cap * sizeof *s->requests));
	}
	s->requests[s->n++] = q;
	if (s->n == REQUESTS_TOGETHER)
		answer_requests(s);
}

/* Answers. */

static bool shows_declarations(const struct symbolizer *s)
{
	return s->options.verbose || s->options.style == LLVM_STYLE_JSON;
}

/* Returns the flags for code: apply_symbol() replaces the frame's name by the symbol's. */
static uint32_t code_flags(const struct symbolizer *s)
{
	const bool own = s->options.functions != LLVM_FUNCTIONS_LINKAGE || shows_declarations(s);

	return own ? FATHOM_DWARF_NAMES : 0;
}

static struct llvm_place *place_at(struct symbolizer *s, size_t i)
{
	if (i == s->cap_places) {
		s->cap_places = s->cap_places ? 2 * s->cap_places : 64;
		s->places = must(realloc(s->places, s->cap_places * sizeof *s->places));
	}
	s->places[i] =
		(struct llvm_place){ .is_short = s->options.functions == LLVM_FUNCTIONS_SHORT };
	return &s->places[i];
}

/*
 * Returns the file in the symbol table, or NULL; linkers write empty names for their own symbols.
 */
static const char *symbol_file_of(const struct fathom_answers *answers, size_t i)
{
	const char *path = fathom_compat_symbol_file(answers, i);

	return path && *path ? path : NULL;
}

/* Names the physical function after the symbol, if there is one. */
static void apply_symbol(const struct symbolizer *s, const struct fathom_answers *answers, size_t i,
			 struct llvm_place *place)
{
	const struct fathom_answer *a = fathom_answers_get(answers, i);

	if (!a->symbol || a->source == FATHOM_SOURCE_DWARF ||
	    s->options.functions != LLVM_FUNCTIONS_LINKAGE)
		return;
	(void)fathom_compat_symbol_name(answers, i, &place->function);
	place->has_start = true;
	place->start = a->module_address - a->offset;
	if (!place->file)
		place->file = symbol_file_of(answers, i);
}

/* Returns the text of @file embedded in the unit of @address, if source lines are to be shown. */
static struct llvm_text embedded_source(const struct symbolizer *s, struct fathom_target *target,
					uint64_t address, const char *file)
{
	struct llvm_text text = { NULL, 0 };

	if (!file || !s->options.context_lines ||
	    fathom_target_source(target, address, file, &text.data, &text.size, NULL))
		return (struct llvm_text){ NULL, 0 };
	return text;
}

/* Makes the places of all frames of answer @i of @target; returns their number. */
static size_t places_of(struct symbolizer *s, struct fathom_target *target,
			const struct fathom_answers *answers, size_t i)
{
	const struct fathom_answer *a = fathom_answers_get(answers, i);
	struct llvm_place *place = place_at(s, 0);
	size_t n = 0;

	for (const struct fathom_frame *frame = a->frame; frame; frame = frame->outer) {
		place = place_at(s, n++);
		(void)fathom_compat_frame_name(frame, &place->function);
		place->file = frame->file;
		place->source = embedded_source(s, target, a->pc.address, place->file);
		place->line = frame->line;
		place->column = frame->column;
		place->discriminator = frame->discriminator;
		place->has_start = frame->start != 0;
		/* Addresses in relocatable files are offsets in sections. */
		place->start = frame->start ? frame->start - a->pc.address + a->module_address : 0;
		place->start_file = place->function.decl_file;
		place->start_line = place->function.decl_line;
	}
	apply_symbol(s, answers, i, place);
	return n ? n : 1;
}

static void answer_code(struct symbolizer *s, const struct request *q,
			const struct llvm_question *question)
{
	const struct fathom_answers *answers = q->module->code.answers;
	size_t n = places_of(s, q->module->target, answers, q->index);

	/* Without inlined calls: the innermost frame's place with the symbol's name. */
	if (!s->options.inlines && s->options.style != LLVM_STYLE_GNU)
		apply_symbol(s, answers, q->index, &s->places[0]);
	if (!s->options.inlines)
		n = 1;
	llvm_print_places(&s->printer, question, s->places, n);
}

static void answer_data(struct symbolizer *s, const struct request *q,
			const struct llvm_question *question)
{
	const struct fathom_answers *answers = q->module->data.answers;
	const struct fathom_answer *a = fathom_answers_get(answers, q->index);
	struct llvm_variable v = { 0 };

	if (fathom_compat_symbol_name(answers, q->index, &v.name)) {
		v.start = a->module_address - a->offset;
		v.size = a->size;
		v.file = symbol_file_of(answers, q->index);
	}
	if (a->frame) {
		v.file = a->frame->file;
		v.line = a->frame->line;
	}
	llvm_print_variable(&s->printer, question, &v);
}

/* Answers @n addresses by LLVM's rules; @flags and @compat come from the options. */
static struct fathom_answers *symbolize(struct symbolizer *s, struct llvm_module *m, uint32_t flags,
					uint32_t compat, const uint64_t *addresses, size_t n)
{
	const struct fathom_compat_symbolize rules = { .size = sizeof rules,
						       .flags = compat,
						       .alias = FATHOM_ALIAS_LLVM };
	const struct fathom_symbolize_options options = { .size = sizeof options,
							  .flags = s->flags | flags,
							  .compat = &rules };
	struct fathom_answers *answers;
	struct fathom_errinfo info;

	if (fathom_symbolize(m->target, &options, addresses, NULL, n, &answers, &info) ||
	    fathom_target_check(m->target, &info)) {
		complain_error(&info);
		exit(1);
	}
	return answers;
}

static void take_address(void *data, size_t i, uint64_t address)
{
	(void)i;
	(void)add_address(data, address);
}

/* Adds @offset to the addresses of symbols whose size exceeds it. */
static void add_offset(struct symbolizer *s, struct llvm_module *m, struct llvm_lookup *symbols,
		       uint64_t offset)
{
	struct fathom_answers *answers;

	if (!offset)
		return;
	answers = symbolize(s, m, FATHOM_NAMES_ONLY, 0, symbols->addresses, symbols->n);
	for (size_t i = 0; i < symbols->n; i++)
		if (offset < fathom_answers_get(answers, i)->size)
			symbols->addresses[i] += offset;
	fathom_answers_free(answers);
}

/* Answers a symbol plus offset with its places; local symbols can have several. */
static void answer_symbol(struct symbolizer *s, const struct request *q,
			  const struct llvm_question *question)
{
	char *text = must(strndup(q->r.symbol.data, q->r.symbol.size));
	const char *const name = text;
	struct llvm_lookup found = { .n = 0 };
	struct fathom_answers *answers = NULL;
	struct llvm_place *places = NULL;
	size_t n = 0;
	uint8_t reason;

	(void)fathom_target_find_all_symbols(q->module->target, 0, &name, 1, &reason, take_address,
					     &found, NULL);
	if (found.n) {
		add_offset(s, q->module, &found, q->r.address);
		answers = symbolize(s, q->module, 0, code_flags(s), found.addresses, found.n);
		places = must(calloc(found.n, sizeof *places));
	}
	for (size_t i = 0; i < found.n; i++) {
		(void)places_of(s, q->module->target, answers, i);
		apply_symbol(s, answers, i, &s->places[0]);
		if (s->places[0].file)
			places[n++] = s->places[0];
	}
	llvm_print_places(&s->printer, question, places, n);
	fathom_answers_free(answers);
	free(found.addresses);
	free(places);
	free(text);
}

/* Answers a request that is invalid or whose module cannot be read. */
static void answer_nothing(struct symbolizer *s, const struct request *q,
			   const struct llvm_question *question)
{
	static const struct llvm_variable variable;
	/* LLVM then has an empty list of inlined frames, but never an empty single place. */
	const bool is_list =
		q->r.command == LLVM_SYMBOL || (q->r.command == LLVM_CODE && s->options.inlines);

	if (q->r.command == LLVM_DATA)
		llvm_print_variable(&s->printer, question, &variable);
	else if (q->r.command == LLVM_FRAME)
		llvm_print_locals(&s->printer, question);
	else
		llvm_print_places(&s->printer, question, place_at(s, 0), is_list ? 0 : 1);
}

/*
 * Answers with the module's error: in its first answer only, but for a build-id without a file in
 * each.
 */
static void answer_error(struct symbolizer *s, const struct request *q,
			 const struct llvm_question *question)
{
	struct llvm_module *m = q->module;
	const bool is_told = !m->is_error_told || llvm_module_is_missing(m);

	m->is_error_told = true;
	if (is_told && s->options.style == LLVM_STYLE_JSON) {
		llvm_print_error(&s->printer, question, llvm_module_error(m));
		return;
	}
	if (is_told)
		complain_as_llvm(s, (struct llvm_text){ m->name, m->name_size },
				 llvm_module_error(m));
	answer_nothing(s, q, question);
}

static struct llvm_question question_of(const struct symbolizer *s, const struct request *q)
{
	struct llvm_question question = { .module = "" };

	if (q->module) {
		question.module = q->module->name;
		question.module_size = q->module->name_size;
	} else if (s->options.file && q->r.command == LLVM_INVALID) {
		question.module = s->options.file;
		question.module_size = strlen(question.module);
	} else if (q->r.has_module && !q->r.is_build_id) {
		question.module = q->r.module.data;
		question.module_size = q->r.module.size;
	}
	if (q->r.symbol.data) {
		question.symbol = q->r.symbol;
	} else if (q->r.command < LLVM_SYMBOL) {
		question.has_address = true;
		question.address = q->r.address;
	}
	return question;
}

static void answer_request(struct symbolizer *s, const struct request *q)
{
	const struct llvm_question question = question_of(s, q);

	if (q->r.command == LLVM_INVALID)
		complain_as_llvm(s, q->line, q->r.error);
	if (!q->module)
		answer_nothing(s, q, &question);
	else if (!q->module->target)
		answer_error(s, q, &question);
	else if (q->r.command == LLVM_CODE)
		answer_code(s, q, &question);
	else if (q->r.command == LLVM_DATA)
		answer_data(s, q, &question);
	else if (q->r.command == LLVM_SYMBOL)
		answer_symbol(s, q, &question);
	else
		llvm_print_locals(&s->printer, &question);
}

static void look_up(struct symbolizer *s, struct llvm_module *m, struct llvm_lookup *l,
		    uint32_t flags, uint32_t compat)
{
	if (l->n)
		l->answers = symbolize(s, m, flags, compat, l->addresses, l->n);
	l->n = 0;
}

/* Answers the pending requests in their order and flushes. */
static void answer_requests(struct symbolizer *s)
{
	for (struct llvm_module *m = llvm_modules_asked(&s->modules); m;
	     m = llvm_modules_next_asked(&s->modules, m)) {
		look_up(s, m, &m->code, 0, code_flags(s));
		look_up(s, m, &m->data, FATHOM_NAMES_ONLY, FATHOM_VARIABLES);
	}
	for (size_t i = 0; i < s->n && !s->out.failed; i++)
		answer_request(s, &s->requests[i]);
	out_flush(&s->out);
	llvm_modules_end_batch(&s->modules);
	s->n = 0;
}

static void answer_stream(struct symbolizer *s)
{
	struct input_stream stream;
	const char *line;
	size_t size;

	input_stream_init(&stream, STDIN_FILENO, input_stream_share(0));
	while (!s->out.failed && input_stream_fill(&stream)) {
		if (input_stream_is_whole_file(&stream))
			s->flags |= FATHOM_ONE_SHOT;
		while (input_stream_line(&stream, &line, &size))
			add_request(s, line, size);
		answer_requests(s);
	}
	input_stream_deinit(&stream);
}

static void answer_arguments(struct symbolizer *s)
{
	llvm_print_begin(&s->printer);
	/* There are no later requests. */
	s->flags |= FATHOM_ONE_SHOT;
	for (size_t i = 0; i < s->options.n_inputs; i++)
		add_request(s, s->options.inputs[i], strlen(s->options.inputs[i]));
	answer_requests(s);
	llvm_print_end(&s->printer);
}

/* Opens the file of the command line; on failure prints the error and returns false. */
static bool open_first(struct symbolizer *s)
{
	const struct llvm_text name = { s->options.file, strlen(s->options.file) };
	const struct llvm_question question = { .module = name.data,
						.module_size = name.size,
						.has_address = true };
	const struct llvm_module *m = llvm_modules_open(&s->modules, name, false);

	if (m->target)
		return true;
	if (s->options.style == LLVM_STYLE_JSON)
		llvm_print_error(&s->printer, &question, llvm_module_error(m));
	else
		complain_as_llvm(s, name, llvm_module_error(m));
	return false;
}

static void start(struct symbolizer *s)
{
	struct fathom_compat_options rules = { .size = sizeof rules, .dwp = s->options.dwp };
	struct fathom_options options = { .size = sizeof options, .compat = &rules };
	struct fathom_errinfo info;

	if (s->options.debuginfod)
		options.flags |= FATHOM_DEBUGINFOD;
	if (s->options.paths == LLVM_PATHS_RELATIVE)
		rules.flags |= FATHOM_RELATIVE_PATHS;
	if (shows_declarations(s))
		rules.flags |= FATHOM_DECLARATIONS;
	if (!s->options.demangle)
		s->flags |= FATHOM_NO_DEMANGLE;
	if (fault_create(&options, &s->session, &info)) {
		complain_error(&info);
		exit(1);
	}
	llvm_modules_init(&s->modules, s->session, &s->options);
	out_init(&s->out);
	llvm_printer_init(&s->printer, &s->options, &s->out);
	if (s->options.context_lines &&
	    fathom_source_files_create(s->session, NULL, &s->printer.sources, &info)) {
		complain_error(&info);
		exit(1);
	}
}

static void stop(struct symbolizer *s)
{
	llvm_printer_deinit(&s->printer);
	out_deinit(&s->out);
	llvm_modules_deinit(&s->modules);
	fault_destroy(s->session);
	llvm_options_deinit(&s->options);
	free(s->requests);
	free(s->places);
}

int verb_llvm_symbolizer(int argc, char **argv)
{
	struct symbolizer *s = must(calloc(1, sizeof *s));
	int status = 0;

	s->name = argv[0];
	llvm_options_parse(argc, argv, &s->options);
	start(s);
	if (s->options.file && !open_first(s))
		status = 1;
	else if (s->options.n_inputs)
		answer_arguments(s);
	else
		answer_stream(s);
	if (s->out.error)
		status = 1;
	stop(s);
	free(s);
	return status;
}
