/* SPDX-License-Identifier: MIT */
/*
 * Lines as other tools print them: frames of sanitizers as asan_symbolize, symbols of the kernel as
 * its decode_stacktrace.sh, LLVM's markup as llvm-symbolizer --filter-markup. What stands before an
 * address in its line stays.
 */
#include "cli/filter_tool.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/print.h"

/* A line, and its addresses. */
struct tool_line {
	const char *text;
	const char *start;
	const char *end;
	const struct fathom_log_addresses *addresses;
	size_t first;
	size_t n;
};

static const struct fathom_log_address *address_of(const struct tool_line *l, size_t i)
{
	return fathom_log_addresses_get(l->addresses, l->first + i);
}

/* Writes FILE:LINE:COLUMN of @frame; @unknown if it has no file. */
static void put_place(struct out *o, const struct fathom_frame *frame, const char *unknown)
{
	if (!frame->file) {
		out_str(o, unknown);
		return;
	}
	out_begin_part(o, OUT_FILE);
	out_text(o, frame->file, frame->file_size);
	out_char(o, ':');
	out_dec(o, frame->line);
	out_char(o, ':');
	out_dec(o, frame->column);
	out_end_part(o);
}

/* Returns the # of the frame whose module is before @at; NULL: there is none. Sets its number. */
static const char *find_frame(const struct tool_line *l, const char *at, uint64_t *ret_number)
{
	while (at > l->start) {
		const char *digit;

		at--;
		if (*at != '#')
			continue;
		*ret_number = 0;
		for (digit = at + 1; digit < l->end && *digit >= '0' && *digit <= '9'; digit++)
			*ret_number = *ret_number * 10 + (uint64_t)(*digit - '0');
		if (digit > at + 1 && digit < l->end && *digit == ' ')
			return at;
	}
	return NULL;
}

/* Writes a frame of a sanitizer: a line for each call that is inlined there. */
static void put_sanitizer(struct tool_style *s, struct out *o, const struct tool_line *l)
{
	const struct fathom_log_address *a = address_of(l, 0);
	const char *const at = l->text + a->at;
	const char *open = memrchr(l->start, '(', (size_t)(at - l->start));
	struct fathom_frame of_symbol;
	uint64_t number;
	const char *hash = open ? find_frame(l, open, &number) : NULL;
	const char *pc;
	const char *pc_end;

	if (hash && !number)
		s->frame = 0;
	pc = hash ? (const char *)memchr(hash, ' ', (size_t)(open - hash)) + 1 : NULL;
	pc_end = hash ? memchr(pc, ' ', (size_t)(l->end - pc)) : NULL;
	if (!pc_end || !a->answer || !a->answer->symbol) {
		s->frame += hash != NULL;
		out_bytes(o, l->start, (size_t)(l->end - l->start));
		return;
	}
	for (const struct fathom_frame *f = print_first_frame(a->answer, &of_symbol); f;
	     f = f->outer) {
		out_bytes(o, l->start, (size_t)(hash + 1 - l->start));
		out_dec(o, s->frame++);
		out_char(o, ' ');
		if (*pc == '0') {
			out_bytes(o, pc, (size_t)(pc_end - pc));
			out_str(o, " in ");
		}
		print_symbol(o, f->function ? f->function : "??",
			     f->function ? f->function_size : 2);
		out_char(o, ' ');
		put_place(o, f, "??:0:0");
		if (*pc != '0') {
			out_char(o, ' ');
			out_bytes(o, open, (size_t)(l->end - open));
		}
		out_str(o, f->outer ? "\n" : "");
	}
}

/* Writes the places of @a, as addr2line -i has them. */
static void put_places(struct out *o, const struct fathom_answer *a)
{
	struct fathom_frame of_symbol;

	for (const struct fathom_frame *f = print_first_frame(a, &of_symbol); f; f = f->outer) {
		if (f->file) {
			out_begin_part(o, OUT_FILE);
			out_text(o, f->file, f->file_size);
			out_char(o, ':');
			out_dec(o, f->line);
			out_end_part(o);
		} else {
			out_str(o, "??:?");
		}
		out_str(o, f->outer ? " " : "");
	}
}

/* Returns the end of " [MODULE]" or " [MODULE BUILD-ID]" after @at, and sets its name; or @at. */
static const char *find_module(const struct tool_line *l, const char *at, const char **ret_name,
			       size_t *ret_size)
{
	const char *end;
	size_t i = 0;

	if (l->end - at < 3 || at[0] != ' ' || at[1] != '[')
		return at;
	end = memchr(at, ']', (size_t)(l->end - at));
	if (!end)
		return at;
	*ret_name = at + 2;
	while (*ret_name + i < end && (*ret_name)[i] != ' ')
		i++;
	*ret_size = i;
	return end + 1;
}

/* Writes symbols of the kernel: NAME (FILE:LINE ...) MODULE in place of NAME+0xOFFSET/0xSIZE. */
static void put_kernel(struct tool_style *s, struct out *o, const struct tool_line *l)
{
	const char *written = l->start;

	(void)s;
	for (size_t i = 0; i < l->n; i++) {
		const struct fathom_log_address *a = address_of(l, i);
		const char *const number = l->text + a->at;
		const char *end = number + a->size;
		const char *module = NULL;
		size_t module_size = 0;

		if (!a->answer || !a->answer->symbol || !a->symbol)
			continue;
		/* One symbol of several functions has several addresses. */
		if (number < written) {
			out_str(o, "; ");
		} else {
			out_bytes(o, written, (size_t)(a->symbol + a->symbol_size - written));
			out_str(o, " (");
		}
		put_places(o, a->answer);
		if (i + 1 < l->n && address_of(l, i + 1)->at == a->at) {
			written = number + 1;
			continue;
		}
		out_char(o, ')');
		while (end < l->end && *end != ' ' && *end != ')' && *end != ',')
			end++;
		end = find_module(l, end, &module, &module_size);
		out_str(o, module ? " " : "");
		out_bytes(o, module ? module : "", module_size);
		written = end;
	}
	out_bytes(o, written, (size_t)(l->end - written));
}

/* Writes the frames of element bt, of which @number is the text before its address. */
static void put_bt(struct out *o, const struct fathom_log_address *a, const char *number,
		   size_t number_size)
{
	const uint64_t lowered = a->kind == FATHOM_LOG_RETURN;
	struct fathom_frame of_symbol;
	uint64_t inner = 1;

	for (const struct fathom_frame *f = print_first_frame(a->answer, &of_symbol); f;
	     f = f->outer, inner++) {
		char pc[sizeof "0x0000000000000000"];

		for (size_t i = number_size + 1; i < 6; i++)
			out_char(o, ' ');
		out_char(o, '#');
		out_bytes(o, number, number_size);
		if (f->outer) {
			out_char(o, '.');
			out_dec(o, inner);
			out_str(o, inner < 10 ? " " : "");
		} else {
			out_str(o, "   ");
		}
		out_char(o, ' ');
		(void)snprintf(pc, sizeof pc, "0x%016" PRIx64, a->number - lowered);
		out_str(o, pc);
		out_char(o, ' ');
		print_symbol(o, f->function ? f->function : "??",
			     f->function ? f->function_size : 2);
		out_char(o, ' ');
		put_place(o, f, "<invalid>:0:0");
		out_str(o, " (");
		out_bytes(o, a->module, a->module_size);
		out_char(o, '+');
		out_hex(o, a->answer->module_address - lowered);
		out_char(o, ')');
		out_str(o, f->outer ? "\n" : "");
	}
}

/* Writes FUNCTION[FILE:LINE] of element pc. */
static void put_pc(struct out *o, const struct fathom_log_address *a)
{
	struct fathom_frame of_symbol;
	const struct fathom_frame *f = print_first_frame(a->answer, &of_symbol);

	print_symbol(o, f->function ? f->function : "??", f->function ? f->function_size : 2);
	out_char(o, '[');
	out_begin_part(o, OUT_FILE);
	if (f->file)
		out_text(o, f->file, f->file_size);
	else
		out_str(o, "<invalid>");
	out_char(o, ':');
	out_dec(o, f->line);
	out_end_part(o);
	out_char(o, ']');
}

/* Writes the element between @start and @end, without braces, which has address @a. */
static void put_element(struct out *o, const struct fathom_log_address *a, const char *start,
			const char *end)
{
	const char *colon;

	if (!a->answer || !a->answer->symbol) {
		out_str(o, "[[[");
		out_bytes(o, start, (size_t)(end - start));
		out_str(o, "]]]");
	} else if (*start == 'b') {
		start += strlen("bt:");
		colon = memchr(start, ':', (size_t)(end - start));
		put_bt(o, a, start, (size_t)(colon - start));
	} else if (*start == 'p') {
		put_pc(o, a);
	} else {
		print_symbol(o, a->answer->symbol, a->answer->symbol_size);
	}
}

/* Writes elements of LLVM's markup; those that tell of modules stay as they are. */
static void put_markup(struct tool_style *s, struct out *o, const struct tool_line *l)
{
	const char *written = l->start;

	(void)s;
	for (size_t i = 0; i < l->n; i++) {
		const struct fathom_log_address *a = address_of(l, i);
		const char *const at = l->text + a->at;
		const char *open = at;
		const char *close = memmem(at, (size_t)(l->end - at), "}}}", 3);

		while (*open != '{')
			open--;
		out_bytes(o, written, (size_t)(open - 2 - written));
		put_element(o, a, open + 1, close);
		written = close + 3;
	}
	out_bytes(o, written, (size_t)(l->end - written));
}

static const struct tool {
	const char *format;
	void (*put)(struct tool_style *s, struct out *o, const struct tool_line *l);
} tools[] = {
	{ "sanitizer", put_sanitizer },
	{ "kernel", put_kernel },
	{ "markup", put_markup },
};

static const struct tool *tool_of(const char *format)
{
	for (size_t i = 0; i < sizeof tools / sizeof *tools; i++)
		if (!strcmp(tools[i].format, format))
			return &tools[i];
	return NULL;
}

bool tool_style_has(const char *format)
{
	return tool_of(format) != NULL;
}

void tool_style_print(struct tool_style *s, struct out *o, const char *text,
		      const struct fathom_log_addresses *addresses, size_t first, size_t n)
{
	const struct fathom_log_address *a = fathom_log_addresses_get(addresses, first);
	const struct tool_line line = { .text = text,
					.start = text + a->line_start,
					.end = text + a->line_end,
					.addresses = addresses,
					.first = first,
					.n = n };

	tool_of(a->format)->put(s, o, &line);
}
