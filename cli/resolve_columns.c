/* SPDX-License-Identifier: MIT */
#include "cli/resolve_columns.h"

#include <stdio.h>
#include <stdlib.h>

#include <fathom/near.h>

#include "cli/common.h"
#include "cli/print.h"

static const char *const column_names[COLUMNS - ROW_KEYS] = {
	"function", "linkage_name", "file",    "line", "column", "inlines", "functions",
	"files",    "lines",        "address", "path", "source", "reason",
};

static const char *column_name(unsigned column)
{
	return column < ROW_KEYS ? row_key_name((enum row_key)column)
				 : column_names[column - ROW_KEYS];
}

/* Complains about a column of --columns and exits. */
static _Noreturn void complain_column(const char *name, size_t size, const char *why)
{
	const char *names[COLUMNS + 1];
	char *copy = must(strndup(name, size));
	char *what = NULL;
	char remedy[64];
	const char *near;

	for (unsigned i = 0; i < COLUMNS; i++)
		names[i] = column_name(i);
	near = fathom_near_text(copy, names, COLUMNS);
	(void)snprintf(remedy, sizeof remedy, "did you mean %s?", near ? near : "");
	if (asprintf(&what, "--columns: '%s'", copy) >= 0)
		complain(what, why,
			 near && strcmp(near, copy) != 0 ? remedy : "see 'fathom resolve --help'");
	exit(EXIT_USAGE);
}

void row_writer_choose(struct row_writer *w, const char *names)
{
	w->n_columns = 0;
	for (;;) {
		const size_t size = strcspn(names, ",");
		unsigned column = 0;

		while (column < COLUMNS && (strlen(column_name(column)) != size ||
					    memcmp(column_name(column), names, size) != 0))
			column++;
		if (column == COLUMNS)
			complain_column(names, size, "is no column");
		for (uint32_t i = 0; i < w->n_columns; i++)
			if (w->columns[i] == column)
				complain_column(names, size, "is given twice");
		w->columns[w->n_columns++] = (uint8_t)column;
		if (!names[size])
			return;
		names += size + 1;
	}
}

void row_writer_init(struct row_writer *w, struct out *out)
{
	w->out = out;
	out_init_kept(&w->item);
	out_init_kept(&w->joined);
}

void row_writer_deinit(struct row_writer *w)
{
	out_deinit(&w->item);
	out_deinit(&w->joined);
}

/* Values of each form. */

static void write_uleb(struct out *o, uint64_t value)
{
	for (; value > 0x7f; value >>= 7)
		out_char(o, (char)(value | 0x80));
	out_char(o, (char)value);
}

static void write_fixed(struct out *o, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		out_char(o, (char)(value >> 8 * i));
}

/* Writes a text; NULL: it is not known. */
static void write_text(struct row_writer *w, const char *s, size_t n)
{
	if (w->form == ROW_BINARY) {
		write_uleb(w->out, n);
		out_bytes(w->out, s ? s : "", n);
	} else if (w->form == ROW_JSON) {
		if (s)
			out_json(w->out, s, n);
		else
			out_str(w->out, "null");
	} else if (s) {
		out_tsv(w->out, s, n);
	} else if (w->has_nulls) {
		out_str(w->out, "\\N");
	}
}

static void write_word(struct row_writer *w, const char *s)
{
	write_text(w, s && *s ? s : NULL, s ? strlen(s) : 0);
}

/* Writes a number, of 32 bits in the binary form; 0: it is not known. */
static void write_number(struct row_writer *w, uint32_t value)
{
	if (w->form == ROW_BINARY)
		write_fixed(w->out, value, sizeof value);
	else if (value || (w->form == ROW_TSV && !w->has_nulls))
		out_dec(w->out, value);
	else
		out_str(w->out, w->form == ROW_JSON ? "null" : "\\N");
}

/* Writes an item of an array; a text is never missing there. */
static void write_item(struct row_writer *w, const char *s, size_t n)
{
	if (w->form != ROW_TSV) {
		write_text(w, s ? s : "", n);
		return;
	}
	out_char(w->out, '\'');
	out_tsv(w->out, s ? s : "", n);
	out_char(w->out, '\'');
}

/* Keys. */

/* Returns whether @t is a number as JSON writes it. */
static bool is_json_number(struct row_text t)
{
	for (uint32_t i = 0; i < t.size; i++)
		if (t.data[i] < '0' || t.data[i] > '9')
			return false;
	return t.size && (t.size == 1 || t.data[0] != '0');
}

static void write_null_or_text(struct row_writer *w, struct row_text t)
{
	/* A null of the input stays one in the output, whatever the options say. */
	if (!t.data && w->form == ROW_TSV && !w->is_binary_input)
		out_str(w->out, "\\N");
	else
		write_text(w, t.data, t.size);
}

/* Writes a number that the input states as text, as it is stated. */
static void write_stated(struct row_writer *w, struct row_text t, uint64_t value)
{
	if (w->form == ROW_BINARY)
		write_fixed(w->out, value, sizeof value);
	else if (w->is_binary_input)
		out_dec(w->out, value);
	else if (w->form == ROW_JSON && !t.is_quoted && is_json_number(t))
		out_bytes(w->out, t.data, t.size);
	else
		write_null_or_text(w, t);
}

static void write_kind(struct row_writer *w, const struct row *row)
{
	const struct row_text t = row->keys[ROW_KIND];

	if (w->form == ROW_BINARY)
		write_fixed(w->out, row->kind, 1);
	else if (t.data && w->form == ROW_JSON && !t.is_quoted && is_json_number(t))
		out_bytes(w->out, t.data, t.size);
	else if (t.data)
		write_text(w, t.data, t.size);
	else
		write_word(w, row->kind ? "return" : "exact");
}

static void write_key(struct row_writer *w, const struct row *row, enum row_key key)
{
	if (key == ROW_OFFSET)
		write_stated(w, row->keys[key], row->offset);
	else if (key == ROW_COUNT)
		write_stated(w, row->keys[key], row->count);
	else if (key == ROW_KIND)
		write_kind(w, row);
	else
		write_null_or_text(w, row->keys[key]);
}

/* Lists. */

/* Makes w->item of what @f is in the list @column. */
static void make_item(struct row_writer *w, const struct fathom_frame *f, unsigned column)
{
	struct out *o = &w->item;

	o->n = 0;
	if (column == COLUMN_INLINES || column == COLUMN_FUNCTIONS)
		out_bytes(o, f->function ? f->function : "??", f->function ? f->function_size : 2);
	if (column == COLUMN_INLINES && f->file)
		out_char(o, ' ');
	if (f->file && (column == COLUMN_INLINES || column == COLUMN_FILES))
		out_bytes(o, f->file, f->file_size);
	if (column == COLUMN_INLINES && f->file && f->line) {
		out_char(o, ':');
		out_dec(o, f->line);
		if (f->column)
			out_char(o, ':');
		if (f->column)
			out_dec(o, f->column);
	}
}

/* Writes the list @column of @f and the frames that it is inlined into, with a separator. */
static void write_joined(struct row_writer *w, const struct fathom_frame *f, unsigned column)
{
	struct out *all = &w->joined;

	all->n = 0;
	for (const struct fathom_frame *first = f; f; f = f->outer) {
		if (f != first)
			out_str(all, w->separator);
		make_item(w, f, column);
		out_bytes(all, w->item.buf, w->item.n);
		if (column == COLUMN_LINES)
			out_dec(all, f->line);
	}
	write_text(w, all->n ? all->buf : NULL, all->n);
}

static void write_array(struct row_writer *w, const struct fathom_frame *f, unsigned column)
{
	uint64_t n = 0;

	for (const struct fathom_frame *g = f; g; g = g->outer)
		n++;
	if (w->form == ROW_BINARY)
		write_uleb(w->out, n);
	else
		out_char(w->out, '[');
	for (uint64_t i = 0; f; f = f->outer, i++) {
		if (i && w->form != ROW_BINARY)
			out_char(w->out, ',');
		if (column != COLUMN_LINES) {
			make_item(w, f, column);
			write_item(w, w->item.buf, w->item.n);
		} else if (w->form == ROW_BINARY) {
			write_fixed(w->out, f->line, sizeof f->line);
		} else {
			out_dec(w->out, f->line);
		}
	}
	if (w->form != ROW_BINARY)
		out_char(w->out, ']');
}

static void write_list(struct row_writer *w, const struct fathom_frame *f, unsigned column)
{
	if (f && column == COLUMN_INLINES)
		f = f->outer;
	if (w->separator)
		write_joined(w, f, column);
	else
		write_array(w, f, column);
}

/* Columns. */

static void write_address(struct row_writer *w, const struct fathom_answer *a)
{
	const bool is_known = a->module_address != FATHOM_NO_ADDRESS;

	if (w->form == ROW_BINARY) {
		write_fixed(w->out, is_known ? a->module_address : 0, sizeof a->module_address);
		return;
	}
	w->item.n = 0;
	out_hex(&w->item, a->module_address);
	write_text(w, is_known ? w->item.buf : NULL, is_known ? w->item.n : 0);
}

static void write_column(struct row_writer *w, const struct fathom_answer *a,
			 const struct fathom_frame *f, unsigned column, const char *reason)
{
	switch (column) {
	case COLUMN_FUNCTION:
		write_text(w, f ? f->function : NULL, f && f->function ? f->function_size : 0);
		break;
	case COLUMN_LINKAGE_NAME:
		write_text(w, f ? f->linkage_name : NULL,
			   f && f->linkage_name ? f->linkage_size : 0);
		break;
	case COLUMN_FILE:
		write_text(w, f ? f->file : NULL, f && f->file ? f->file_size : 0);
		break;
	case COLUMN_LINE:
		write_number(w, f ? f->line : 0);
		break;
	case COLUMN_COLUMN:
		write_number(w, f ? f->column : 0);
		break;
	case COLUMN_ADDRESS:
		write_address(w, a);
		break;
	case COLUMN_PATH:
		write_word(w, a->module ? a->module->path : NULL);
		break;
	case COLUMN_SOURCE:
		write_word(w, fathom_source_name((enum fathom_source)a->source));
		break;
	case COLUMN_REASON:
		write_word(w, reason);
		break;
	default:
		write_list(w, f, column);
	}
}

/* Writes what stands before column @i. */
static void write_between(struct row_writer *w, uint32_t i)
{
	if (w->form == ROW_TSV && i)
		out_char(w->out, '\t');
	if (w->form != ROW_JSON)
		return;
	out_str(w->out, i ? ",\"" : "{\"");
	out_str(w->out, column_name(w->columns[i]));
	out_str(w->out, "\":");
}

void row_write(struct row_writer *w, const struct row *row, const struct fathom_answer *a,
	       const char *reason)
{
	struct fathom_frame of_symbol;
	const struct fathom_frame *f =
		a->frame || a->symbol ? print_first_frame(a, &of_symbol) : NULL;

	for (uint32_t i = 0; i < w->n_columns; i++) {
		write_between(w, i);
		if (w->columns[i] < ROW_KEYS)
			write_key(w, row, (enum row_key)w->columns[i]);
		else
			write_column(w, a, f, w->columns[i], reason);
	}
	if (w->form == ROW_JSON)
		out_char(w->out, '}');
	if (w->form != ROW_BINARY)
		out_char(w->out, '\n');
}
