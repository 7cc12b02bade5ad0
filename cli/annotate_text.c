/* SPDX-License-Identifier: MIT */
/*
 * Annotated functions as text: lines of source, each with its instructions below it, in the order
 * of addresses or the hottest first.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common.h"
#include "cli/print.h"
#include "cli/report_annotate.h"

#define NONE FATHOM_ANNOTATED_NONE

/* Instructions without samples that are printed before and after those with some. */
#define CONTEXT 4
/* Code of at most so many instructions is printed as a whole. */
#define SHORT_CODE 40
/* Percent from which on a weight is hot, and warm. */
#define HOT  5.0
#define WARM 0.5

enum row_kind { ROW_CODE, ROW_FILE, ROW_LINE, ROW_INNER, ROW_INSTRUCTION, ROW_SKIPPED };

struct row {
	enum row_kind kind;
	size_t index;     /* of the code, line or instruction; of ROW_SKIPPED: how many */
	bool with_weight; /* of lines */
};

struct rows {
	struct row *items;
	size_t n;
	size_t cap;
};

/* A function that is printed. */
struct text {
	const struct annotate_print *p;
	struct out *o;
	const struct fathom_annotated_function *f;
	uint64_t self; /* weight that is 100 % of self */
	struct rows rows;
	struct jump_lines jumps;
	size_t width;                             /* digits of addresses */
	const struct fathom_annotated_file *file; /* whose path was printed last */
	uint32_t line;                            /* row of a line that was added last; or NONE */
	uint32_t inner;
};

static void add_row(struct rows *r, enum row_kind kind, size_t index, bool with_weight)
{
	if (r->n == r->cap) {
		r->cap = 2 * r->cap + 64;
		r->items = must(realloc(r->items, r->cap * sizeof *r->items));
	}
	r->items[r->n++] = (struct row){ kind, index, with_weight };
}

static double percent_of(uint64_t part, uint64_t whole)
{
	return whole ? 100. * (double)part / (double)whole : 0;
}

/* Writes a percentage in 7 columns, nothing of 0, in the colour of its heat if it is @heated. */
static void put_percent(struct out *o, uint64_t part, uint64_t whole, bool heated)
{
	const double percent = percent_of(part, whole);
	const bool is_coloured = heated && percent >= WARM;
	char text[32];

	if (part)
		(void)snprintf(text, sizeof text, "%7.2f", percent);
	else
		(void)snprintf(text, sizeof text, "%7s", "");
	if (is_coloured)
		out_begin_part(o, percent >= HOT ? OUT_HOT : OUT_WARM);
	out_str(o, text);
	if (is_coloured)
		out_end_part(o);
}

/* Writes the columns of a weight; NULL: empty ones. */
static void put_weight(const struct text *t, const struct fathom_annotated_weight *w)
{
	static const struct fathom_annotated_weight none;
	char text[32];

	w = w ? w : &none;
	put_percent(t->o, w->self + w->inlined, t->self, true);
	out_char(t->o, ' ');
	put_percent(t->o, w->total, t->f->weight.total, false);
	if (w->self_samples + w->inlined_samples)
		(void)snprintf(text, sizeof text, " %7" PRIu64 " ",
			       w->self_samples + w->inlined_samples);
	else
		(void)snprintf(text, sizeof text, " %7s ", "");
	out_str(t->o, text);
}

/* Writes the lines of jumps beside row @i. */
static void put_jumps(const struct text *t, size_t i)
{
	if (t->jumps.width)
		out_bytes(t->o, t->jumps.cells + i * t->jumps.width, t->jumps.width);
}

/* Writes a line of source: tabs as they are, all that a terminal acts on escaped. */
static void put_source(struct out *o, const char *text, size_t size)
{
	while (size) {
		const char *tab = memchr(text, '\t', size);
		const size_t n = tab ? (size_t)(tab - text) : size;

		out_text(o, text, n);
		if (!tab)
			return;
		out_str(o, "    ");
		text += n + 1;
		size -= n + 1;
	}
}

static void put_file(struct text *t, const struct fathom_annotated_file *file)
{
	struct out *o = t->o;

	out_begin_part(o, OUT_FILE);
	out_text(o, file->path, strlen(file->path));
	out_end_part(o);
	if (file->why) {
		out_begin_part(o, OUT_REASON);
		out_str(o, " (no source: ");
		out_text(o, file->why, strlen(file->why));
		out_str(o, ", see --source-dir)");
		out_end_part(o);
	} else if (file->is_newer) {
		out_begin_part(o, OUT_REASON);
		out_str(o, " (newer than the program: its lines may differ)");
		out_end_part(o);
	}
}

/* Writes the number and the text of @l. */
static void put_line(struct text *t, const struct fathom_annotated_line *l)
{
	struct out *o = t->o;
	char number[16];

	(void)snprintf(number, sizeof number, "%5" PRIu32 " ", l->line);
	out_begin_part(o, OUT_NAME);
	out_str(o, number);
	if (l->text)
		put_source(o, l->text, l->text_size);
	out_end_part(o);
}

/* Writes the line of a function that is inlined into the one that is printed. */
static void put_inner(struct text *t, const struct fathom_annotated_line *l)
{
	struct out *o = t->o;
	const char *name = last_part(l->file->path);

	out_str(o, "      ");
	out_begin_part(o, OUT_FILE);
	out_text(o, l->function, strlen(l->function));
	out_char(o, ' ');
	out_text(o, name, strlen(name));
	out_char(o, ':');
	out_dec(o, l->line);
	out_end_part(o);
	if (l->text) {
		const char *text = l->text;
		size_t size = l->text_size;

		for (; size && (*text == ' ' || *text == '\t'); text++)
			size--;
		out_str(o, "  ");
		put_source(o, text, size);
	}
}

static void put_instruction(struct text *t, const struct fathom_annotated_instruction *i)
{
	char address[32];

	(void)snprintf(address, sizeof address, "%*" PRIx64 "  ", (int)t->width, i->address);
	out_str(t->o, address);
	out_text(t->o, i->text, strlen(i->text));
}

static void put_code(struct text *t, const struct fathom_annotated_code *c)
{
	struct out *o = t->o;

	out_str(o, c->is_inlined_here ? "inlined into " : "code of ");
	out_text(o, c->name ? c->name : "??", strlen(c->name ? c->name : "??"));
	out_str(o, " at ");
	out_hex(o, c->start);
	if (c->why) {
		out_begin_part(o, OUT_REASON);
		out_str(o, " (no instructions: ");
		out_text(o, c->why, strlen(c->why));
		out_char(o, ')');
		out_end_part(o);
	}
}

/* Writes row @i. */
static void put_row(struct text *t, size_t i)
{
	const struct row *r = &t->rows.items[i];
	const struct fathom_annotated_function *f = t->f;
	const bool is_line = r->kind == ROW_LINE || r->kind == ROW_INNER;

	put_weight(t, r->kind == ROW_INSTRUCTION  ? &f->instructions[r->index].weight
		      : is_line && r->with_weight ? &f->lines[r->index].weight
						  : NULL);
	put_jumps(t, i);
	out_char(t->o, ' ');
	switch (r->kind) {
	case ROW_CODE:
		put_code(t, &f->codes[r->index]);
		break;
	case ROW_FILE:
		put_file(t, f->lines[r->index].file);
		break;
	case ROW_LINE:
		put_line(t, &f->lines[r->index]);
		break;
	case ROW_INNER:
		put_inner(t, &f->lines[r->index]);
		break;
	case ROW_INSTRUCTION:
		put_instruction(t, &f->instructions[r->index]);
		break;
	case ROW_SKIPPED:
		out_str(t->o, "      ...");
		break;
	}
	out_char(t->o, '\n');
}

/* Adds the file of line @number, if another one was added last. */
static void add_file(struct text *t, uint32_t number)
{
	const struct fathom_annotated_file *file = t->f->lines[number].file;

	if (file == t->file)
		return;
	t->file = file;
	add_row(&t->rows, ROW_FILE, number, false);
}

/* Adds the lines that instruction @i is of, if they are not those of the one before. */
static void add_lines(struct text *t, const struct fathom_annotated_instruction *i)
{
	const bool is_other = i->line != t->line;

	if (i->line != NONE && (is_other || (i->inlined_line == NONE && t->inner != NONE))) {
		add_file(t, i->line);
		add_row(&t->rows, ROW_LINE, i->line, false);
	}
	if (i->inlined_line != NONE && (is_other || i->inlined_line != t->inner))
		add_row(&t->rows, ROW_INNER, i->inlined_line, false);
	t->line = i->line;
	t->inner = i->inlined_line;
}

static bool has_samples(const struct fathom_annotated_weight *w)
{
	return w->self_samples || w->inlined_samples || w->total_samples;
}

/* Returns which instructions of @c are printed, a byte for each, to be freed. */
static uint8_t *choose(const struct text *t, const struct fathom_annotated_code *c)
{
	const struct fathom_annotated_instruction *all = t->f->instructions + c->first;
	uint8_t *wanted = must(calloc(c->n + 1, 1));
	const bool is_short = c->n <= SHORT_CODE || t->p->is_whole;
	size_t far = CONTEXT + 1; /* from the last one with samples */

	for (size_t i = 0; i < c->n; i++) {
		far = has_samples(&all[i].weight) ? 0 : far + 1;
		wanted[i] = t->p->is_whole || !far ||
			    (!all[i].is_outside && (is_short || far <= CONTEXT));
	}
	far = CONTEXT + 1;
	for (size_t i = c->n; i-- > 0;) {
		far = has_samples(&all[i].weight) ? 0 : far + 1;
		wanted[i] |= !all[i].is_outside && far <= CONTEXT;
	}
	return wanted;
}

/* Adds the rows of @c, in the order of addresses. */
static void add_code(struct text *t, const struct fathom_annotated_code *c)
{
	uint8_t *wanted = choose(t, c);
	size_t skipped = 0;

	for (size_t i = 0; i < c->n; i++) {
		if (!wanted[i]) {
			skipped++;
			continue;
		}
		if (skipped) {
			add_row(&t->rows, ROW_SKIPPED, skipped, false);
			t->line = t->inner = NONE;
			skipped = 0;
		}
		add_lines(t, &t->f->instructions[c->first + i]);
		add_row(&t->rows, ROW_INSTRUCTION, c->first + i, false);
	}
	if (skipped)
		add_row(&t->rows, ROW_SKIPPED, skipped, false);
	free(wanted);
}

static void add_by_address(struct text *t)
{
	for (size_t i = 0; i < t->f->n_codes; i++) {
		const struct fathom_annotated_code *c = &t->f->codes[i];

		if (t->f->n_codes > 1 || c->is_inlined_here || c->why)
			add_row(&t->rows, ROW_CODE, i, false);
		t->line = t->inner = NONE;
		add_code(t, c);
	}
}

/* A line as it is ranked. */
struct ranked {
	uint64_t self;
	uint64_t total;
	size_t line;
};

static int compare_ranked(const void *pa, const void *pb)
{
	const struct ranked *a = pa;
	const struct ranked *b = pb;

	return a->self != b->self     ? (a->self < b->self ? 1 : -1)
	       : a->total != b->total ? (a->total < b->total ? 1 : -1)
				      : (a->line > b->line ? 1 : -1);
}

/* Instructions by line, linked: index + 1; 0 ends. */
struct by_line {
	size_t *first; /* of each line; at the end those without one */
	size_t *next;  /* of each instruction */
};

static struct by_line sort_by_line(const struct fathom_annotated_function *f)
{
	struct by_line b = { .first = must(calloc(f->n_lines + 1, sizeof *b.first)),
			     .next = must(calloc(f->n_instructions + 1, sizeof *b.next)) };

	for (size_t i = f->n_instructions; i-- > 0;) {
		const struct fathom_annotated_instruction *at = &f->instructions[i];
		const size_t line = at->inlined_line != NONE ? at->inlined_line
				    : at->line != NONE       ? at->line
							     : f->n_lines;

		b.next[i] = b.first[line];
		b.first[line] = i + 1;
	}
	return b;
}

/* Adds the instructions of line @line, those with samples unless all are wanted. */
static void add_instructions(struct text *t, const struct by_line *b, size_t line)
{
	for (size_t i = b->first[line]; i; i = b->next[i - 1])
		if (t->p->is_whole || has_samples(&t->f->instructions[i - 1].weight))
			add_row(&t->rows, ROW_INSTRUCTION, i - 1, false);
}

/* Adds the lines by their own weight, each with its instructions. */
static void add_hot_first(struct text *t)
{
	const struct fathom_annotated_function *f = t->f;
	struct by_line b = sort_by_line(f);
	struct ranked *all = must(malloc((f->n_lines + 1) * sizeof *all));
	size_t n = 0;

	for (size_t i = 0; i < f->n_lines; i++) {
		const struct fathom_annotated_line *l = &f->lines[i];

		if (has_samples(&l->weight) || (t->p->is_whole && l->has_code))
			all[n++] =
				(struct ranked){ l->function ? l->weight.inlined : l->weight.self,
						 l->weight.total, i };
	}
	if (n)
		qsort(all, n, sizeof *all, compare_ranked);
	for (size_t i = 0; i < n; i++) {
		const bool is_inner = f->lines[all[i].line].function;

		if (!is_inner)
			add_file(t, (uint32_t)all[i].line);
		add_row(&t->rows, is_inner ? ROW_INNER : ROW_LINE, all[i].line, true);
		add_instructions(t, &b, all[i].line);
	}
	add_instructions(t, &b, f->n_lines);
	free(all);
	free(b.first);
	free(b.next);
}

/* Adds the lines alone, of code whose instructions are not there. */
static void add_lines_alone(struct text *t)
{
	const struct fathom_annotated_function *f = t->f;

	for (uint32_t i = 0; i < f->n_lines; i++) {
		const bool is_inner = f->lines[i].function;

		if (!is_inner)
			add_file(t, i);
		add_row(&t->rows, is_inner ? ROW_INNER : ROW_LINE, i, true);
	}
}

/* Draws the jumps between the rows. */
static void draw_jumps(struct text *t)
{
	const struct fathom_annotated_function *f = t->f;
	struct jump_row *rows = must(malloc((t->rows.n + 1) * sizeof *rows));
	size_t *places = must(malloc((f->n_instructions + 1) * sizeof *places));

	for (size_t i = 0; i < f->n_instructions; i++)
		places[i] = SIZE_MAX;
	for (size_t i = 0; i < t->rows.n; i++)
		if (t->rows.items[i].kind == ROW_INSTRUCTION)
			places[t->rows.items[i].index] = i;
	for (size_t i = 0; i < t->rows.n; i++) {
		const struct row *r = &t->rows.items[i];
		const uint32_t jump =
			r->kind == ROW_INSTRUCTION ? f->instructions[r->index].jump : NONE;

		rows[i].to = jump == NONE ? SIZE_MAX : places[jump];
	}
	jump_lines_init(&t->jumps, rows, t->rows.n);
	free(rows);
	free(places);
}

/* Writes a weight of the header, of @samples if they are known, and what follows it. */
static void put_sum(const struct text *t, const char *key, uint64_t weight, uint64_t samples,
		    const char *more)
{
	char text[32];

	report_text_line(t->o, key, "%s, %.2f %%, %" PRIu64 " sample%s%s",
			 report_weight_text((double)weight, t->p->print->unit, text),
			 percent_of(weight, t->p->sums->weight), samples, samples == 1 ? "" : "s",
			 more);
}

/* Returns the line of the first instruction that has one; else the first line. */
static size_t main_line(const struct fathom_annotated_function *f)
{
	for (size_t i = 0; i < f->n_instructions; i++)
		if (f->instructions[i].line != NONE)
			return f->instructions[i].line;
	return 0;
}

static void put_header(const struct text *t)
{
	const struct fathom_annotated_function *f = t->f;
	const struct report_print *p = t->p->print;
	struct out *o = t->o;
	char text[32];

	report_text_line(o, "function:", "%s", f->name);
	if (f->module)
		report_text_line(o, "module:", "%s", f->module);
	if (f->n_lines)
		report_text_line(o, "file:", "%s", f->lines[main_line(f)].file->path);
	report_text_line(o, "event:", "%s, %s in %" PRIu64 " samples",
			 p->time           ? report_time_words[p->time]
			 : *p->info->event ? p->info->event
					   : "samples",
			 report_weight_text((double)t->p->sums->weight, p->unit, text),
			 t->p->sums->n_samples);
	put_sum(t, "self:", f->weight.self, f->weight.self_samples, "");
	if (f->weight.inlined_samples)
		put_sum(t, "inlined:", f->weight.inlined, f->weight.inlined_samples,
			", in functions that are inlined into it");
	put_sum(t, "total:", f->weight.total, f->weight.total_samples, "");
	if (f->why)
		report_text_line(o, "code:", "none (%s)", f->why);
	else if (f->elsewhere.self_samples + f->elsewhere.inlined_samples)
		put_sum(t, "elsewhere:", f->elsewhere.self + f->elsewhere.inlined,
			f->elsewhere.self_samples + f->elsewhere.inlined_samples,
			", at none of the instructions");
}

/* Returns the digits of the highest address. */
static size_t address_width(const struct fathom_annotated_function *f)
{
	uint64_t highest = 0;
	size_t n = 1;

	for (size_t i = 0; i < f->n_instructions; i++)
		highest =
			f->instructions[i].address > highest ? f->instructions[i].address : highest;
	while (highest >>= 4)
		n++;
	return n;
}

void annotate_text(const struct annotate_print *p, struct out *o, size_t number,
		   const struct fathom_annotated_function *f)
{
	struct text t = { .p = p,
			  .o = o,
			  .f = f,
			  .self = f->weight.self + f->weight.inlined,
			  .width = address_width(f),
			  .line = NONE,
			  .inner = NONE };

	if (number)
		out_char(o, '\n');
	put_header(&t);
	if (p->is_hot_first)
		add_hot_first(&t);
	else if (f->n_codes)
		add_by_address(&t);
	if (!p->is_hot_first && !f->n_instructions)
		add_lines_alone(&t);
	if (!p->is_hot_first)
		draw_jumps(&t);
	if (t.rows.n)
		out_str(o, "\n  self %  total % samples\n");
	for (size_t i = 0; i < t.rows.n && !o->failed; i++)
		put_row(&t, i);
	jump_lines_deinit(&t.jumps);
	free(t.rows.items);
}
