/* SPDX-License-Identifier: MIT */
#include "cli/compat/llvm/styles.h"

#include "cli/common.h"
#include "cli/compat/llvm/spelled.h"

void llvm_printer_init(struct llvm_printer *p, const struct llvm_options *options, struct out *out)
{
	*p = (struct llvm_printer){ .options = options, .out = out };
	out_init_kept(&p->scratch);
}

void llvm_printer_deinit(struct llvm_printer *p)
{
	out_deinit(&p->scratch);
	fathom_source_files_free(p->sources);
}

static const char *base_of(const char *path)
{
	const char *base = last_part(path);

	return *base ? base : path;
}

/* Returns @path in the form that the options select. */
static const char *shown_path(const struct llvm_printer *p, const char *path)
{
	return path && p->options->paths == LLVM_PATHS_BASENAME ? base_of(path) : path;
}

/* Writes the name to @o; returns false if there is none. */
static bool write_name(const struct llvm_printer *p, struct out *o,
		       const struct fathom_compat_name *f, bool is_short)
{
	const bool wanted = p->options->functions != LLVM_FUNCTIONS_NONE;

	if (!f->name || !wanted || (is_short && !f->plain_name))
		return false;
	if (is_short)
		out_str(o, f->plain_name);
	else
		llvm_name(o, f);
	return true;
}

/* JSON, with LLVM's indentation if selected. */

static void json_indent(struct llvm_printer *p)
{
	if (!p->options->pretty)
		return;
	out_char(p->out, '\n');
	for (unsigned i = 0; i < 2 * p->depth; i++)
		out_char(p->out, ' ');
}

/* Writes the separator before an array's member or an object's key. */
static void json_next(struct llvm_printer *p)
{
	if (p->filled)
		out_char(p->out, ',');
	p->filled = true;
	if (p->depth)
		json_indent(p);
}

static void json_open(struct llvm_printer *p, char bracket)
{
	out_char(p->out, bracket);
	p->depth++;
	p->filled = false;
}

static void json_close(struct llvm_printer *p, char bracket)
{
	p->depth--;
	if (p->filled)
		json_indent(p);
	out_char(p->out, bracket);
	p->filled = true;
}

static void json_key(struct llvm_printer *p, const char *key)
{
	json_next(p);
	out_char(p->out, '"');
	out_str(p->out, key);
	out_str(p->out, p->options->pretty ? "\": " : "\":");
}

static void json_bytes(struct llvm_printer *p, const char *key, const char *s, size_t n)
{
	json_key(p, key);
	out_json_as_it_is(p->out, s, n);
}

static void json_string(struct llvm_printer *p, const char *key, const char *s)
{
	json_bytes(p, key, s ? s : "", s ? strlen(s) : 0);
}

static void json_hex(struct llvm_printer *p, const char *key, bool known, uint64_t value)
{
	json_key(p, key);
	out_char(p->out, '"');
	if (known)
		out_hex(p->out, value);
	out_char(p->out, '"');
}

static void json_number(struct llvm_printer *p, const char *key, uint64_t value)
{
	json_key(p, key);
	out_dec(p->out, value);
}

static void json_scratch(struct llvm_printer *p, const char *key)
{
	json_bytes(p, key, p->scratch.buf, p->scratch.n);
}

/* Starts the object of an answer, up to the key in its middle. */
static void json_begin(struct llvm_printer *p, const struct llvm_question *q)
{
	if (p->in_list)
		json_next(p);
	json_open(p, '{');
	if (q->has_address)
		json_hex(p, "Address", true, q->address);
}

static void json_end(struct llvm_printer *p)
{
	json_close(p, '}');
	if (!p->in_list) {
		out_char(p->out, '\n');
		p->filled = false;
	}
}

/* Writes the keys that repeat the request, after all others. */
static void json_module(struct llvm_printer *p, const struct llvm_question *q)
{
	json_bytes(p, "ModuleName", q->module, q->module_size);
	if (q->symbol.data)
		json_bytes(p, "SymName", q->symbol.data, q->symbol.size);
}

static void json_source(struct llvm_printer *p, const struct llvm_place *place)
{
	if (!place->file || !p->options->context_lines)
		return;
	p->scratch.n = 0;
	llvm_source_write(p->sources, &p->scratch, place->source, shown_path(p, place->file),
			  place->line, p->options->context_lines);
	if (p->scratch.n)
		json_scratch(p, "Source");
}

static void json_place(struct llvm_printer *p, const struct llvm_place *place, bool with_source)
{
	json_next(p);
	json_open(p, '{');
	json_number(p, "Column", place->column);
	json_number(p, "Discriminator", place->discriminator);
	json_string(p, "FileName", shown_path(p, place->file));
	p->scratch.n = 0;
	(void)write_name(p, &p->scratch, &place->function, place->is_short);
	json_scratch(p, "FunctionName");
	json_number(p, "Line", place->line);
	if (with_source)
		json_source(p, place);
	json_hex(p, "StartAddress", place->has_start, place->start);
	json_string(p, "StartFileName", shown_path(p, place->start_file));
	json_number(p, "StartLine", place->start_line);
	json_close(p, '}');
}

static void json_places(struct llvm_printer *p, const struct llvm_question *q,
			const struct llvm_place *places, size_t n)
{
	const bool by_symbol = q->symbol.data != NULL;

	json_begin(p, q);
	if (!by_symbol)
		json_module(p, q);
	json_key(p, by_symbol ? "Loc" : "Symbol");
	json_open(p, '[');
	for (size_t i = 0; i < n; i++)
		json_place(p, &places[i], !by_symbol);
	json_close(p, ']');
	if (by_symbol)
		json_module(p, q);
	json_end(p);
}

/* Text. */

static bool is_json(const struct llvm_printer *p)
{
	return p->options->style == LLVM_STYLE_JSON;
}

static void print_header(struct llvm_printer *p, const struct llvm_question *q)
{
	if (!p->options->addresses || !q->has_address)
		return;
	out_hex(p->out, q->address);
	out_str(p->out, p->options->pretty ? ": " : "\n");
}

static void print_footer(struct llvm_printer *p)
{
	if (p->options->style == LLVM_STYLE_LLVM)
		out_char(p->out, '\n');
}

static void print_item(struct out *o, const char *name, uint64_t value)
{
	out_str(o, name);
	out_dec(o, value);
	out_char(o, '\n');
}

static void print_verbose(struct llvm_printer *p, const char *file, const struct llvm_place *place)
{
	struct out *o = p->out;

	out_str(o, "  Filename: ");
	out_str(o, file);
	out_char(o, '\n');
	if (place->start_line) {
		out_str(o, "  Function start filename: ");
		out_str(o, place->start_file ? shown_path(p, place->start_file) : "<invalid>");
		out_char(o, '\n');
		print_item(o, "  Function start line: ", place->start_line);
	}
	if (place->has_start && p->options->style == LLVM_STYLE_LLVM) {
		out_str(o, "  Function start address: ");
		out_hex(o, place->start);
		out_char(o, '\n');
	}
	print_item(o, "  Line: ", place->line);
	print_item(o, "  Column: ", place->column);
	if (place->discriminator)
		print_item(o, "  Discriminator: ", place->discriminator);
}

static void print_simple(struct llvm_printer *p, const char *file, const struct llvm_place *place)
{
	struct out *o = p->out;

	out_str(o, file);
	out_char(o, ':');
	out_dec(o, place->line);
	if (p->options->style == LLVM_STYLE_LLVM) {
		out_char(o, ':');
		out_dec(o, place->column);
	} else if (place->discriminator) {
		out_str(o, " (discriminator ");
		out_dec(o, place->discriminator);
		out_char(o, ')');
	}
	out_char(o, '\n');
	if (p->options->context_lines)
		llvm_source_write(p->sources, o, place->source, file, place->line,
				  p->options->context_lines);
}

static void print_place(struct llvm_printer *p, const struct llvm_place *place, bool inlined)
{
	const char *file = place->file ? shown_path(p, place->file) : "??";

	if (p->options->functions != LLVM_FUNCTIONS_NONE) {
		if (p->options->pretty && inlined)
			out_str(p->out, " (inlined by) ");
		if (!write_name(p, p->out, &place->function, place->is_short))
			out_str(p->out, "??");
		out_str(p->out, p->options->pretty ? " at " : "\n");
	}
	if (p->options->verbose)
		print_verbose(p, file, place);
	else
		print_simple(p, file, place);
}

void llvm_print_places(struct llvm_printer *p, const struct llvm_question *q,
		       const struct llvm_place *places, size_t n)
{
	static const struct llvm_place nothing;
	const bool by_symbol = q->symbol.data != NULL;

	if (is_json(p)) {
		json_places(p, q, places, n);
		return;
	}
	print_header(p, q);
	for (size_t i = 0; i < n; i++)
		print_place(p, &places[i], i > 0 && !by_symbol);
	if (!n)
		print_place(p, &nothing, false);
	print_footer(p);
}

static void json_variable(struct llvm_printer *p, const struct llvm_question *q,
			  const struct llvm_variable *v)
{
	json_begin(p, q);
	json_key(p, "Data");
	json_open(p, '{');
	p->scratch.n = 0;
	if (v->name.name)
		llvm_name(&p->scratch, &v->name);
	json_scratch(p, "Name");
	json_hex(p, "Size", true, v->size);
	json_hex(p, "Start", true, v->start);
	json_close(p, '}');
	json_module(p, q);
	json_end(p);
}

void llvm_print_variable(struct llvm_printer *p, const struct llvm_question *q,
			 const struct llvm_variable *v)
{
	struct out *o = p->out;

	if (is_json(p)) {
		json_variable(p, q, v);
		return;
	}
	print_header(p, q);
	if (v->name.name)
		llvm_name(o, &v->name);
	else
		out_str(o, "??");
	out_char(o, '\n');
	out_dec(o, v->start);
	out_char(o, ' ');
	out_dec(o, v->size);
	out_char(o, '\n');
	out_str(o, v->file ? v->file : "??"); /* never shortened */
	out_char(o, ':');
	if (v->file)
		out_dec(o, v->line);
	else
		out_char(o, '?');
	out_char(o, '\n');
	print_footer(p);
}

void llvm_print_locals(struct llvm_printer *p, const struct llvm_question *q)
{
	if (is_json(p)) {
		json_begin(p, q);
		json_key(p, "Frame");
		json_open(p, '[');
		json_close(p, ']');
		json_module(p, q);
		json_end(p);
		return;
	}
	print_header(p, q);
	out_str(p->out, "??\n");
	print_footer(p);
}

void llvm_print_error(struct llvm_printer *p, const struct llvm_question *q, const char *why)
{
	json_begin(p, q);
	json_key(p, "Error");
	json_open(p, '{');
	json_string(p, "Message", why);
	json_close(p, '}');
	json_module(p, q);
	json_end(p);
}

void llvm_print_begin(struct llvm_printer *p)
{
	if (!is_json(p))
		return;
	p->in_list = true;
	json_open(p, '[');
}

void llvm_print_end(struct llvm_printer *p)
{
	if (!p->in_list)
		return;
	json_close(p, ']');
	out_char(p->out, '\n');
}
