/* SPDX-License-Identifier: MIT */
#include "cli/source_printer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/json.h"

/* Longer lines are cut. */
#define LONGEST_LINE 4096

void source_init(struct source_printer *s, const struct common *c, struct fathom_target *target,
		 const char *indent)
{
	const struct fathom_source_options options = { .size = sizeof options,
						       .dirs = c->source_dirs };
	struct fathom_errinfo info;

	*s = (struct source_printer){ .target = target, .n = c->source_lines, .indent = indent };
	if (s->n && fathom_source_files_create(c->session, &options, &s->files, &info)) {
		complain_error(&info);
		exit(EXIT_USAGE);
	}
}

void source_deinit(struct source_printer *s)
{
	for (size_t i = 0; i < s->n_told; i++)
		free(s->told[i]);
	free(s->told);
	free(s->refused);
	fathom_source_files_free(s->files);
}

bool source_is_wanted(const struct source_printer *s)
{
	return s && s->files;
}

/* Returns what helps against @info, of a text that was not found; NULL: nothing known. */
static const char *remedy_for_text(const struct fathom_errinfo *info)
{
	if (info->cause)
		return common_cause_remedy(info->cause);
	return info->err == FATHOM_E_NOT_FOUND || info->err == FATHOM_E_MISMATCH ||
			       info->err == FATHOM_E_OS
		       ? "see --source-dir"
		       : NULL;
}

/* Why there are no lines. */
struct why_none {
	char text[512];
	const char *remedy;
};

static void set_why(struct why_none *why, const char *text, const char *remedy)
{
	(void)snprintf(why->text, sizeof why->text, "%s", text);
	why->remedy = remedy;
}

/* Finds the text that has the line of @frame; NULL with the reason if there is none. */
static const struct fathom_source_text *find_text(struct source_printer *s, struct fathom_pc pc,
						  const struct fathom_frame *frame,
						  struct why_none *ret)
{
	const struct fathom_source_text *text;
	struct fathom_source_lines lines;
	struct fathom_errinfo info;

	if (!frame->line) {
		set_why(ret, "the debug information gives no line", NULL);
		return NULL;
	}
	if (fathom_source_files_find(s->files, s->target, pc, frame->file, &text, &info)) {
		/* The frame names the file already. */
		if (strcmp(info.file, frame->file) == 0)
			info.file[0] = '\0';
		(void)fathom_errinfo_format(&info, ret->text, sizeof ret->text);
		ret->remedy = remedy_for_text(&info);
		return NULL;
	}
	fathom_source_lines_begin(text->text, text->size, frame->line, 1, &lines);
	if (fathom_source_lines_next(&lines))
		return text;
	set_why(ret, "the file has fewer lines: it is another one, or was changed",
		text->is_proven ? NULL : "see --source-dir");
	return NULL;
}

/* Returns the bytes of the line that are shown: whole characters of UTF-8. */
static size_t shown_size(const struct fathom_source_lines *l)
{
	size_t size = l->size;

	if (size <= LONGEST_LINE)
		return size;
	size = LONGEST_LINE;
	while (size > LONGEST_LINE - 4 && ((unsigned char)l->line[size] & 0xc0) == 0x80)
		size--;
	return size;
}

/* Writes a line of a file: tabs as they are, anything else that a terminal acts on escaped. */
static void print_code(struct out *o, const char *text, size_t size)
{
	for (;;) {
		const char *tab = memchr(text, '\t', size);
		const size_t n = tab ? (size_t)(tab - text) : size;

		out_text(o, text, n);
		if (!tab)
			return;
		out_char(o, '\t');
		text += n + 1;
		size -= n + 1;
	}
}

static void print_line(struct out *o, const char *indent, const struct fathom_source_lines *l,
		       bool is_marked)
{
	char digits[FATHOM_NUMBER_SIZE];
	const size_t width = fathom_format_dec(digits, l->last);
	const size_t n = fathom_format_dec(digits, l->number);
	const size_t size = shown_size(l);

	out_str(o, indent);
	if (is_marked)
		out_begin_part(o, OUT_NAME);
	out_str(o, is_marked ? "> " : "  ");
	for (size_t i = n; i < width; i++)
		out_char(o, ' ');
	out_bytes(o, digits, n);
	if (size)
		out_str(o, "  ");
	print_code(o, l->line, size);
	if (size < l->size)
		out_str(o, " ...");
	if (is_marked)
		out_end_part(o);
	out_char(o, '\n');
}

/* Returns whether nothing was said of @path yet, and remembers it. */
static bool is_first(struct source_printer *s, const char *path)
{
	for (size_t i = 0; i < s->n_told; i++)
		if (strcmp(s->told[i], path) == 0)
			return false;
	s->told = must(realloc(s->told, (s->n_told + 1) * sizeof *s->told));
	s->told[s->n_told++] = must(strdup(path));
	return true;
}

static void begin_note(struct out *o, const struct source_printer *s, const char *text)
{
	out_str(o, s->indent);
	out_begin_part(o, OUT_REASON);
	out_str(o, text);
}

static void end_note(struct out *o)
{
	out_char(o, ')');
	out_end_part(o);
	out_char(o, '\n');
}

/* Says once of each file that it is another one than the compiler names, or may have changed. */
static void print_note(struct out *o, struct source_printer *s,
		       const struct fathom_source_text *text)
{
	if ((text->origin != FATHOM_TEXT_DIRECTORY && !text->is_newer) || !is_first(s, text->path))
		return;
	begin_note(o, s, "(source: ");
	out_text(o, text->path, strlen(text->path));
	if (text->is_newer)
		out_str(o, ", newer than the program: its lines may differ");
	end_note(o);
}

/* Returns whether the reason why @path has no lines was printed just before, and remembers it. */
static bool is_repeated(struct source_printer *s, const char *path)
{
	if (!s->is_terse)
		return false;
	if (s->refused && strcmp(s->refused, path) == 0)
		return true;
	free(s->refused);
	s->refused = must(strdup(path));
	return false;
}

static void print_why(struct out *o, const struct source_printer *s, const struct why_none *why)
{
	begin_note(o, s, "(no source: ");
	out_text(o, why->text, strlen(why->text));
	if (why->remedy) {
		out_str(o, ", ");
		out_str(o, why->remedy);
	}
	end_note(o);
}

void source_print(struct out *o, struct source_printer *s, struct fathom_pc pc,
		  const struct fathom_frame *frame)
{
	const struct fathom_source_text *text;
	struct fathom_source_lines lines;
	struct why_none why;

	if (!source_is_wanted(s) || !frame || !frame->file)
		return;
	text = find_text(s, pc, frame, &why);
	if (!text) {
		if (!is_repeated(s, frame->file))
			print_why(o, s, &why);
		return;
	}
	print_note(o, s, text);
	fathom_source_lines_begin(text->text, text->size, frame->line, s->n, &lines);
	while (fathom_source_lines_next(&lines))
		print_line(o, s->indent, &lines, lines.number == frame->line);
}

static void json_lines(struct out *o, const struct fathom_source_text *text, uint64_t line,
		       uint64_t n)
{
	struct fathom_source_lines lines;
	bool any = false;

	fathom_source_lines_begin(text->text, text->size, line, n, &lines);
	out_char(o, '[');
	while (fathom_source_lines_next(&lines)) {
		const size_t size = shown_size(&lines);

		out_str(o, any ? ",{" : "{");
		json_count(o, "line", lines.number);
		out_str(o, ",\"text\":");
		out_json(o, lines.line, size);
		if (size < lines.size)
			out_str(o, ",\"cut\":true");
		out_char(o, '}');
		any = true;
	}
	out_char(o, ']');
}

void source_json(struct out *o, struct source_printer *s, struct fathom_pc pc,
		 const struct fathom_frame *frame)
{
	const struct fathom_source_text *text = NULL;
	struct why_none why = { .remedy = NULL };

	if (!source_is_wanted(s))
		return;
	if (frame->file)
		text = find_text(s, pc, frame, &why);
	out_str(o, ",\"source_lines\":");
	if (!text) {
		out_str(o, "null,\"source_file\":null,\"source_origin\":null,"
			   "\"source_proven\":null,\"source_newer\":null,");
		json_string(o, "source_reason", why.text);
		return;
	}
	json_lines(o, text, frame->line, s->n);
	out_char(o, ',');
	json_string(o, "source_file", text->path);
	out_char(o, ',');
	json_string(o, "source_origin",
		    fathom_text_origin_name((enum fathom_text_origin)text->origin));
	out_str(o, text->is_proven ? ",\"source_proven\":true" : ",\"source_proven\":false");
	out_str(o, text->is_newer ? ",\"source_newer\":true," : ",\"source_newer\":false,");
	json_string(o, "source_reason", NULL);
}
