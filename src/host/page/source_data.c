/* SPDX-License-Identifier: MIT */
#include "host/page/source_data.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/base/option_struct.h"
#include "host/base/path.h"
#include "host/profile/in_memory.h"
#include "safe/base/error.h"
#include "safe/base/sort.h"

/* Functions with less self weight are left out, in millionths; and those after so many. */
#define LEAST_SHARE    5000
#define MOST_FUNCTIONS 200
/* The most bytes of all functions, before they are compressed. */
#define MOST_BYTES ((size_t)2 << 20)
/* Lines, and instructions without a line, before and after those with samples. */
#define LINES_AROUND 5
#define CODE_AROUND  8
/* Bytes of a line of source; longer ones are cut. */
#define LONGEST_LINE 512
#define TAB          8
#define ELLIPSIS     "…"
/* Room for a line, with spaces for its tabs. */
#define LINE_TEXT_SIZE (LONGEST_LINE * TAB + sizeof ELLIPSIS)
/* Bytes of what stands above instructions, and of all reasons of a function. */
#define HEAD_SIZE    1024
#define REASONS_SIZE 1024
/* Bytes that a row takes in the columns, at most, beside its texts. */
#define ROW_SIZE 32

#define NOTHING (FATHOM_ANNOTATE_NO_INSTRUCTIONS | FATHOM_ANNOTATE_NO_SOURCE)

struct fathom_page_spot {
	uint32_t module; /* index in the profile */
	uint32_t number; /* 0: it has no samples */
	uint64_t address;
	uint64_t size; /* bytes */
};

/* The lines and instructions of a function that are in the page. */
struct kept {
	const struct fathom_annotated_function *f;
	/*
	 * By line of the function itself: its number from 1 on; 0: it is left out. By line of what
	 * is inlined: the number from 1 on of the last piece of code that was measured with it.
	 */
	uint32_t *lines;
	uint8_t *instructions; /* by instruction: 1: it is kept */
};

static int compare_spots(const void *pa, const void *pb)
{
	const struct fathom_page_spot *a = pa;
	const struct fathom_page_spot *b = pb;
	const int order = u64_compare(a->module, b->module);

	return order ? order : u64_compare(a->address, b->address);
}

/* Returns the spot that holds @address of @module, or NULL. */
static struct fathom_page_spot *find_spot(const struct fathom_page_source *s, uint32_t module,
					  uint64_t address)
{
	const struct fathom_page_spot wanted = { .module = module, .address = address };
	const size_t n = FATHOM_BISECT(s->n_spots, i, compare_spots(&s->spots[i], &wanted) <= 0);
	struct fathom_page_spot *found;

	if (!n)
		return NULL;
	found = &s->spots[n - 1];
	return found->module == module && address - found->address < found->size ? found : NULL;
}

/* Collects the instructions of all functions, each once. */
static bool collect_spots(struct fathom_page_source *s)
{
	size_t all = 0;
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		all += s->functions[i].n_instructions;
	s->spots = malloc((all + 1) * sizeof *s->spots);
	for (size_t i = 0; s->spots && i < s->n; i++) {
		const struct fathom_annotated_function *f = &s->functions[i];

		for (size_t k = 0; k < f->n_instructions; k++) {
			const struct fathom_annotated_instruction *one = &f->instructions[k];

			s->spots[s->n_spots++] =
				(struct fathom_page_spot){ .module =
								   f->codes[one->code].module_index,
							   .address = one->address,
							   .size = one->size };
		}
	}
	if (s->n_spots > 1)
		qsort(s->spots, s->n_spots, sizeof *s->spots, compare_spots);
	for (size_t i = 0; i < s->n_spots; i++)
		if (!n || compare_spots(&s->spots[n - 1], &s->spots[i]))
			s->spots[n++] = s->spots[i];
	s->n_spots = n;
	return s->spots;
}

/* Numbers the spots that locations of @profile are at. */
static bool number_spots(struct fathom_page_source *s, const struct fathom_profile *profile,
			 uint32_t *n_spots)
{
	s->by_location = calloc(profile->n_locations + 1, sizeof *s->by_location);
	for (size_t i = 0; s->by_location && i < profile->n_locations; i++) {
		const struct fathom_profile_location *l = &profile->locations[i];
		struct fathom_page_spot *spot =
			l->module == UINT32_MAX ? NULL
						: find_spot(s, l->module, fathom_pc_lookup(l->pc));

		if (spot && !spot->number)
			spot->number = ++*n_spots;
		s->by_location[i] = spot ? spot->number : 0;
	}
	return s->by_location;
}

/* Reads how functions are annotated; false if the options are not valid. */
static bool read_options(const struct fathom_report_options *options,
			 struct fathom_annotation_options *o)
{
	const uint32_t known = FATHOM_ANNOTATE_INTEL | FATHOM_ANNOTATE_NO_DEMANGLE | NOTHING;

	return !options->annotation || (FATHOM_OPTIONS_READ(options->annotation, o, known) &&
					!o->query && !o->filters && !o->limit);
}

fathom_err fathom_page_source_init(struct fathom_page_source *s,
				   const struct fathom_profile *profile,
				   const struct fathom_report_options *options, uint32_t *n_spots,
				   struct fathom_errinfo *reterr)
{
	struct fathom_annotation_options o = { .size = sizeof o };
	struct fathom_report_options filters = *options;
	struct fathom_errinfo info;
	fathom_err err;

	if (!read_options(options, &o))
		return fathom_fail_options(reterr);
	if ((o.flags & NOTHING) == NOTHING) {
		(void)snprintf(s->why, sizeof s->why, "they were not asked for");
		return FATHOM_OK;
	}
	filters.annotation = NULL;
	filters.time = FATHOM_REPORT_CPU;
	filters.least_share = LEAST_SHARE;
	o.filters = &filters;
	o.limit = MOST_FUNCTIONS;
	err = fathom_annotation_create(profile, &o, &s->annotation, &info);
	if (err == FATHOM_E_LIMIT)
		(void)snprintf(s->why, sizeof s->why, "%s", info.what);
	if (err == FATHOM_E_LIMIT || err == FATHOM_E_NOT_FOUND)
		return FATHOM_OK;
	if (err) {
		if (reterr)
			*reterr = info;
		return err;
	}
	s->functions = fathom_annotation_functions(s->annotation, &s->n);
	s->left_out = fathom_annotation_left_out(s->annotation);
	return collect_spots(s) && number_spots(s, profile, n_spots) ? FATHOM_OK
								     : fathom_fail_memory(reterr);
}

static bool has_weight(const struct fathom_annotated_weight *w)
{
	return w->self_samples || w->inlined_samples;
}

/* Keeps line @i, and those around it in its file. */
static void keep_around(struct kept *k, size_t i)
{
	const struct fathom_annotated_line *lines = k->f->lines;

	for (size_t at = i;
	     at < k->f->n_lines && !lines[at].function && lines[at].file == lines[i].file &&
	     lines[at].line - lines[i].line <= LINES_AROUND;
	     at++)
		k->lines[at] = 1;
	for (size_t at = i; at-- > 0 && lines[at].file == lines[i].file &&
			    lines[i].line - lines[at].line <= LINES_AROUND;)
		k->lines[at] = 1;
}

/* Keeps the instructions without a line around @i. */
static void keep_code_around(struct kept *k, size_t i)
{
	const struct fathom_annotated_instruction *all = k->f->instructions;
	size_t at = i < CODE_AROUND ? 0 : i - CODE_AROUND;

	for (; at < k->f->n_instructions && at <= i + CODE_AROUND; at++)
		if (all[at].code == all[i].code && all[at].line == FATHOM_ANNOTATED_NONE &&
		    !all[at].is_outside)
			k->instructions[at] = 1;
}

static void choose_instructions(struct kept *k)
{
	for (size_t i = 0; i < k->f->n_instructions; i++) {
		const struct fathom_annotated_instruction *one = &k->f->instructions[i];

		if (one->line != FATHOM_ANNOTATED_NONE && k->lines[one->line])
			k->instructions[i] = 1;
		if (has_weight(&one->weight))
			keep_code_around(k, i);
	}
}

/* Chooses what of k->f the page has; returns false without memory. */
static bool choose(struct kept *k)
{
	const struct fathom_annotated_function *f = k->f;
	uint32_t n = 0;

	k->lines = calloc(f->n_lines + 1, sizeof *k->lines);
	k->instructions = calloc(f->n_instructions + 1, 1);
	if (!k->lines || !k->instructions)
		return false;
	for (size_t i = 0; i < f->n_lines; i++)
		if (!f->lines[i].function && has_weight(&f->lines[i].weight))
			keep_around(k, i);
	choose_instructions(k);
	for (size_t i = 0; i < f->n_lines; i++)
		if (k->lines[i])
			k->lines[i] = ++n;
	return true;
}

/*
 * Makes @to the text of line @l: with spaces for tabs, the escape of NUL, and an ellipsis if it is
 * cut.
 */
static void make_text(char to[LINE_TEXT_SIZE], const struct fathom_annotated_line *l)
{
	const bool is_cut = l->text_size > LONGEST_LINE;
	size_t size = is_cut ? LONGEST_LINE : l->text_size;
	size_t n = 0;
	size_t column = 0;

	while (is_cut && size && ((unsigned char)l->text[size] & 0xc0) == 0x80)
		size--;
	if (!is_cut && size && l->text[size - 1] == '\r')
		size--;
	for (size_t i = 0; i < size; i++) {
		const unsigned char c = (unsigned char)l->text[i];
		const size_t width = c == '\t' ? TAB - column % TAB : (c & 0xc0) != 0x80;

		if (c == '\t')
			memset(to + n, ' ', width);
		else if (c)
			to[n] = (char)c;
		else
			memcpy(to + n, "\\x00", 4);
		n += c == '\t' ? width : c ? 1 : 4;
		column += width;
	}
	(void)strcpy(to + n, is_cut ? ELLIPSIS : "");
}

/* Makes @head what is inlined at instruction @i, and what its function is inlined into. */
static void make_head(char head[HEAD_SIZE], const struct kept *k,
		      const struct fathom_annotated_instruction *i)
{
	const struct fathom_annotated_code *c = &k->f->codes[i->code];
	const struct fathom_annotated_line *l =
		i->inlined_line == FATHOM_ANNOTATED_NONE ? NULL : &k->f->lines[i->inlined_line];
	char text[LINE_TEXT_SIZE];

	*head = '\0';
	if (c->is_inlined_here)
		(void)snprintf(head, HEAD_SIZE / 2, "inlined into %s%s", c->name ? c->name : "??",
			       l ? ": " : "");
	if (!l)
		return;
	make_text(text, l);
	(void)snprintf(head + strlen(head), HEAD_SIZE - strlen(head), "%s (%s:%" PRIu32 ")  %s",
		       l->function, fathom_path_last_part(l->file->path), l->line,
		       text + strspn(text, " "));
}

/* Returns how many bytes of the page @k takes, at most: those of its texts without repetitions. */
static size_t measure(struct kept *k)
{
	const struct fathom_annotated_function *f = k->f;
	size_t size = REASONS_SIZE;
	uint32_t last = FATHOM_ANNOTATED_NONE;
	char text[LINE_TEXT_SIZE];
	char head[HEAD_SIZE];

	for (size_t i = 0; i < f->n_lines; i++) {
		if (!k->lines[i])
			continue;
		make_text(text, &f->lines[i]);
		size += ROW_SIZE + strlen(text);
		if (!i || f->lines[i].file != f->lines[i - 1].file)
			size += strlen(f->lines[i].file->path);
	}
	for (size_t i = 0; i < f->n_instructions; i++) {
		const struct fathom_annotated_instruction *one = &f->instructions[i];
		const bool is_inner = one->inlined_line != FATHOM_ANNOTATED_NONE;
		uint32_t *measured = is_inner ? &k->lines[one->inlined_line] : &last;

		if (!k->instructions[i])
			continue;
		size += ROW_SIZE + strlen(one->text);
		if (*measured == one->code + 1)
			continue;
		*measured = one->code + 1;
		make_head(head, k, one);
		size += strlen(head);
	}
	return size;
}

static void put(struct fathom_page_data *d, unsigned column, uint64_t value)
{
	fathom_page_put(&d->columns[column], value);
}

static void put_text(struct fathom_page_data *d, unsigned column, const char *text)
{
	put(d, column, fathom_page_text(&d->texts, text));
}

static void put_lines(struct fathom_page_data *d, const struct kept *k)
{
	char text[LINE_TEXT_SIZE];

	for (size_t i = 0; i < k->f->n_lines; i++) {
		const struct fathom_annotated_line *l = &k->f->lines[i];

		if (l->function || !k->lines[i])
			continue;
		make_text(text, l);
		put_text(d, FATHOM_PAGE_LINE_FILE, l->file->path);
		fathom_page_put_delta(&d->columns[FATHOM_PAGE_LINE_NUMBER], l->line);
		put_text(d, FATHOM_PAGE_LINE_TEXT, text);
	}
}

static void put_instructions(struct fathom_page_data *d, const struct fathom_page_source *s,
			     const struct kept *k)
{
	char head[HEAD_SIZE];

	for (size_t i = 0; i < k->f->n_instructions; i++) {
		const struct fathom_annotated_instruction *one = &k->f->instructions[i];
		const struct fathom_page_spot *spot;

		if (!k->instructions[i])
			continue;
		spot = find_spot(s, k->f->codes[one->code].module_index, one->address);
		fathom_page_put_delta(&d->columns[FATHOM_PAGE_CODE_ADDRESS], one->address);
		put_text(d, FATHOM_PAGE_CODE_TEXT, one->text);
		put(d, FATHOM_PAGE_CODE_LINE,
		    one->line == FATHOM_ANNOTATED_NONE ? 0 : k->lines[one->line]);
		make_head(head, k, one);
		put_text(d, FATHOM_PAGE_CODE_HEAD, head);
		put(d, FATHOM_PAGE_CODE_SPOT, spot ? spot->number : 0);
	}
}

/* Appends a reason to those in @text, unless it is there or there is no room. */
static void add_reason(char text[REASONS_SIZE], const char *of, const char *reason)
{
	const size_t n = strlen(text);
	char more[REASONS_SIZE];

	if (!reason)
		return;
	(void)snprintf(more, sizeof more, "%s%s%s", of, *of ? ": " : "", reason);
	if (!strstr(text, more) && n + strlen(more) + sizeof "; " <= REASONS_SIZE)
		(void)snprintf(text + n, REASONS_SIZE - n, "%s%s", n ? "; " : "", more);
}

/* Appends why the function has no instructions, or lines no texts. */
static void put_reasons(struct fathom_page_data *d, const struct kept *k)
{
	char text[REASONS_SIZE] = "";

	add_reason(text, "", k->f->why);
	for (size_t i = 0; i < k->f->n_codes; i++)
		add_reason(text, "", k->f->codes[i].why);
	for (size_t i = 0; i < k->f->n_lines; i++) {
		const struct fathom_annotated_file *file = k->f->lines[i].file;

		if (k->f->lines[i].function || !k->lines[i] ||
		    (i && file == k->f->lines[i - 1].file))
			continue;
		add_reason(text, fathom_path_last_part(file->path), file->why);
		if (file->is_newer)
			add_reason(text, fathom_path_last_part(file->path),
				   "it was changed after the program was made");
	}
	put_text(d, FATHOM_PAGE_SOURCE_WHY, text);
}

/* Returns the bytes of all that stands in the page for source. */
static size_t bytes_of(const struct fathom_page_data *d)
{
	size_t n = d->texts.bytes;

	for (unsigned i = FATHOM_PAGE_SOURCE_FUNCTION; i <= FATHOM_PAGE_CODE_SPOT; i++)
		n += d->columns[i].bytes.n;
	return n;
}

void fathom_page_source_put(struct fathom_page_source *s, size_t i, uint32_t number, size_t side,
			    struct fathom_page_data *d)
{
	struct kept k = { .f = &s->functions[i] };
	const size_t before = bytes_of(d);

	if (!choose(&k)) {
		d->no_memory = true;
	} else if (s->bytes + measure(&k) > MOST_BYTES) {
		s->left_out++;
	} else {
		put(d, FATHOM_PAGE_SOURCE_FUNCTION, number);
		put(d, FATHOM_PAGE_SOURCE_SIDE, side);
		put_reasons(d, &k);
		put_lines(d, &k);
		put_instructions(d, s, &k);
		put(d, FATHOM_PAGE_SOURCE_LINES, d->columns[FATHOM_PAGE_LINE_TEXT].n);
		put(d, FATHOM_PAGE_SOURCE_CODE, d->columns[FATHOM_PAGE_CODE_SPOT].n);
		s->bytes += bytes_of(d) - before;
	}
	free(k.lines);
	free(k.instructions);
}

void fathom_page_source_fact(const struct fathom_page_source *s, size_t side,
			     struct fathom_page_data *d)
{
	char but[80] = "";

	if (*s->why) {
		fathom_page_fact(d, side, "source", "No source texts and instructions: %s.",
				 s->why);
		return;
	}
	if (s->left_out)
		(void)snprintf(but, sizeof but, ", but for %zu: they are too many, or too large",
			       s->left_out);
	fathom_page_fact(d, side, "source",
			 "Source texts and instructions are here of functions with %u.%u %% of the "
			 "weight on a processor or more%s.",
			 LEAST_SHARE / 10000, LEAST_SHARE / 1000 % 10, but);
}

void fathom_page_source_deinit(struct fathom_page_source *s)
{
	fathom_annotation_free(s->annotation);
	free(s->spots);
	free(s->by_location);
}
