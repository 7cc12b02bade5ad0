/* SPDX-License-Identifier: MIT */
/* Lines of functions, and their texts. Each text is read once for all lines of it. */
#include <stdlib.h>
#include <string.h>

#include "host/annotate/annotating.h"
#include "safe/base/error.h"

/* Longer lines are cut, in bytes. */
#define LONGEST_LINE 4096
/* Lines without code between two with code, of which texts are kept. */
#define WIDEST_GAP 20

/* A line as it is sorted: those of the function itself first. */
struct ordered {
	const char *inner; /* NULL: of the function itself */
	const char *file;
	uint32_t line;
	uint32_t number;
};

static int compare_texts(const char *a, const char *b)
{
	return a == b ? 0 : strcmp(a ? a : "", b ? b : "");
}

static int compare_lines(const void *pa, const void *pb)
{
	const struct ordered *a = pa;
	const struct ordered *b = pb;
	int order = !!a->inner - !!b->inner;

	order = order ? order : compare_texts(a->file, b->file);
	order = order ? order : u64_compare(a->line, b->line);
	order = order ? order : compare_texts(a->inner, b->inner);
	return order ? order : u64_compare(a->number, b->number);
}

/* Returns the lines of @f in their order, to be freed; NULL without memory. */
static struct ordered *order_lines(struct fathom_annotating *a,
				   const struct fathom_annotate_function *f)
{
	struct ordered *all = malloc((f->lines.n + 1) * sizeof *all);

	for (size_t i = 0; all && i < f->lines.n; i++) {
		const struct fathom_annotate_line *l = &a->lines.items[f->lines.items[i]];

		all[i] =
			(struct ordered){ .inner = l->inner == NONE ? NULL
								    : a->names.items[l->inner].text,
					  .file = a->names.items[l->file].text,
					  .line = l->line,
					  .number = f->lines.items[i] };
	}
	if (all && f->lines.n > 1)
		qsort(all, f->lines.n, sizeof *all, compare_lines);
	a->no_memory |= !all;
	return all;
}

/* Lines of one file, sorted by number. */
struct group {
	struct fathom_annotating *a;
	const struct ordered *lines;
	size_t n;
	struct fathom_target *target; /* NULL: the module's file is not there */
	struct fathom_annotated_file *file;
	const struct fathom_source_text *text; /* NULL: there is none */
};

/* Returns the file of the lines of @g, which is new if it has no path. */
static struct fathom_annotated_file *file_of(struct group *g)
{
	struct fathom_annotating *a = g->a;
	const struct fathom_annotate_line *l = &a->lines.items[g->lines->number];
	uint32_t *number = fathom_key_map_at(&a->by_file, (uint64_t)l->module << 32 | l->file);
	struct fathom_annotated_file *file;

	if (number && *number != FATHOM_KEY_NEW)
		return a->files.items[*number];
	file = fathom_arena_alloc(&a->annotation->arena, sizeof *file);
	if (!number || !file || !fathom_array_push(&a->files, file)) {
		a->no_memory = true;
		return NULL;
	}
	*number = (uint32_t)a->files.n - 1;
	*file = (struct fathom_annotated_file){ .path = NULL };
	return file;
}

/* Finds the text of the file of @g. */
static void find_text(struct group *g)
{
	struct fathom_annotating *a = g->a;
	const struct fathom_annotate_line *l = &a->lines.items[g->lines->number];
	const struct fathom_pc pc = { .address = l->address };
	const bool is_new = !g->file->path;
	struct fathom_errinfo info = { .err = FATHOM_OK };
	char why[512];

	if (is_new)
		g->file->path = fathom_annotate_copy(a, g->lines->file);
	if (a->options->flags & FATHOM_ANNOTATE_NO_SOURCE || a->no_memory)
		return;
	if (fathom_source_files_find(a->sources, g->target, pc, g->lines->file, &g->text, &info)) {
		a->no_memory |= info.err == FATHOM_E_MEMORY;
		g->text = NULL;
		if (strcmp(info.file, g->lines->file) == 0)
			info.file[0] = '\0';
		(void)fathom_errinfo_format(&info, why, sizeof why);
		if (is_new)
			g->file->why = fathom_annotate_copy(a, why);
		return;
	}
	if (!is_new)
		return;
	g->file->found = fathom_annotate_copy(a, g->text->path);
	g->file->origin = g->text->origin;
	g->file->is_proven = g->text->is_proven;
	g->file->is_newer = g->text->is_newer;
}

/* Adds the lines between those of @g, if they are few. */
static void fill_gaps(struct group *g)
{
	struct fathom_annotating *a = g->a;

	for (size_t i = 1; i < g->n && !a->no_memory; i++) {
		const struct fathom_annotate_line l = a->lines.items[g->lines[i].number];
		struct fathom_annotate_origin origin = { .file = g->lines->file,
							 .line = g->lines[i - 1].line + 1,
							 .module = l.module,
							 .address = l.address };

		if (g->lines[i].line - g->lines[i - 1].line > WIDEST_GAP)
			continue;
		for (; origin.line < g->lines[i].line; origin.line++)
			(void)fathom_annotate_line_at(a, l.function, NULL, &origin);
	}
}

/* Keeps the current line of @from as the text of @l; returns false if it does not fit. */
static bool keep_text(struct fathom_annotating *a, struct fathom_annotate_line *l,
		      const struct fathom_source_lines *from)
{
	size_t size = from->size < LONGEST_LINE ? from->size : LONGEST_LINE;
	char *text;

	/* Whole characters of UTF-8. */
	while (size < from->size && size > LONGEST_LINE - 4 &&
	       ((unsigned char)from->line[size] & 0xc0) == 0x80)
		size--;
	if (!fathom_annotate_fits(a, size))
		return false;
	a->taken += size;
	text = fathom_arena_strdup(&a->annotation->arena,
				   (struct fathom_str){ from->line, (uint32_t)size });
	a->no_memory |= !text;
	l->text = text;
	l->text_size = (uint32_t)size;
	return true;
}

/* Gives all lines of @g their texts. */
static void take_texts(struct group *g)
{
	struct fathom_annotating *a = g->a;
	struct fathom_source_lines from;
	bool more = g->text;

	if (g->text)
		fathom_source_lines_begin(g->text->text, g->text->size, 1, UINT32_MAX, &from);
	for (size_t i = 0; i < g->n; i++) {
		struct fathom_annotate_line *l = &a->lines.items[g->lines[i].number];

		l->source = g->file;
		while (more && from.number < l->line)
			more = fathom_source_lines_next(&from);
		if (more && from.number == l->line) {
			if (!keep_text(a, l, &from))
				g->file->why = "the texts do not fit the memory budget";
		} else if (g->text && !g->file->why) {
			g->file->why = "the file has fewer lines: it is another one, or was "
				       "changed";
		}
	}
}

/* Calls @fn for each group of lines of one file, of @module, that have no texts yet. */
static void each_group(struct fathom_annotating *a, uint32_t function, uint32_t module,
		       struct fathom_target *target, void (*fn)(struct group *g))
{
	const struct fathom_annotate_function *f = &a->functions.items[function];
	struct ordered *all = order_lines(a, f);
	size_t n = 0;

	/* Lines of this module only; texts that were found stay. */
	for (size_t i = 0; all && i < f->lines.n; i++)
		if (a->lines.items[all[i].number].module == module &&
		    !a->lines.items[all[i].number].text)
			all[n++] = all[i];
	for (size_t first = 0, end; first < n && !a->no_memory; first = end) {
		struct group g = { .a = a, .lines = all + first, .target = target };

		for (end = first + 1; end < n && !all[end].inner == !all[first].inner &&
				      strcmp(all[end].file, all[first].file) == 0;
		     end++)
			continue;
		g.n = end - first;
		g.file = file_of(&g);
		if (g.file)
			find_text(&g);
		if (g.file && !a->no_memory)
			fn(&g);
	}
	free(all);
}

static void fill_group(struct group *g)
{
	if (g->text && !g->lines->inner)
		fill_gaps(g);
}

void fathom_annotate_texts(struct fathom_annotating *a, uint32_t function, uint32_t module,
			   struct fathom_target *target)
{
	if (!(a->options->flags & FATHOM_ANNOTATE_NO_SOURCE))
		each_group(a, function, module, target, fill_group);
	each_group(a, function, module, target, take_texts);
}

/* Copies the lines of @f, and writes to @places which index each has. */
static void finish_lines(struct fathom_annotating *a, const struct fathom_annotate_function *f,
			 struct fathom_annotated_function *to, uint32_t *places)
{
	struct ordered *all = order_lines(a, f);
	struct fathom_annotated_line *lines =
		fathom_arena_alloc(&a->annotation->arena, (f->lines.n + 1) * sizeof *lines);

	a->no_memory |= !lines;
	for (size_t i = 0; all && lines && i < f->lines.n; i++) {
		const struct fathom_annotate_line *l = &a->lines.items[all[i].number];

		places[all[i].number] = (uint32_t)i;
		lines[i] = (struct fathom_annotated_line){
			.file = l->source,
			.function = fathom_annotate_copy(a, all[i].inner),
			.text = l->text,
			.text_size = l->text_size,
			.line = l->line,
			.has_code =
				l->has_code || l->weight.total_samples || l->weight.inlined_samples,
			.weight = l->weight,
		};
	}
	to->lines = lines;
	to->n_lines = f->lines.n;
	free(all);
}

static uint32_t place_in(const uint32_t *places, uint32_t number)
{
	return number == NONE ? NONE : places[number];
}

void fathom_annotate_finish(struct fathom_annotating *a, struct fathom_annotate_function *f,
			    struct fathom_annotated_function *to)
{
	uint32_t *places = malloc((a->lines.n + 1) * sizeof *places);
	struct fathom_annotated_instruction *items = f->instructions.items;

	a->no_memory |= !places;
	if (!places)
		return;
	finish_lines(a, f, to, places);
	for (size_t i = 0; !a->no_memory && i < f->instructions.n; i++) {
		items[i].line = place_in(places, items[i].line);
		items[i].inlined_line = place_in(places, items[i].inlined_line);
	}
	free(places);
	/* The annotation frees these. */
	to->instructions = items;
	to->n_instructions = f->instructions.n;
	to->codes = f->codes.items;
	to->n_codes = f->codes.n;
	f->instructions.items = NULL;
	f->codes.items = NULL;
	f->instructions.n = f->instructions.cap = f->codes.n = f->codes.cap = 0;
}
