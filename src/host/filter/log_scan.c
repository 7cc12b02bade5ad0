/* SPDX-License-Identifier: MIT */
#include "host/filter/log_scan.h"

#include <stdlib.h>

#include "host/filter/anchors.h"
#include "host/filter/formats.h"

/* Bytes of a line that are looked at. */
#define MAX_LINE 65536

/* Build-ids that are kept before a new batch forgets them. */
#define MAX_BUILD_IDS 65536

/* Lines between two program counters whose code may come in any order. */
#define MAX_MIXED 8

/* Modules of markup that do not count any more, whose texts are kept. */
#define MAX_STALE 4096

/* Returns the number of line breaks in [@from, @to). */
static uint64_t count_breaks(const char *from, const char *to)
{
	uint64_t n = 0;

	while (from < to && (from = memchr(from, '\n', (size_t)(to - from))) != NULL) {
		n++;
		from++;
	}
	return n;
}

/* Reads the line from @start to @end by the first format that it is of. */
static void read_line(struct fathom_log_scan *s, const char *start, const char *end)
{
	struct fathom_log_line line = { start, end };

	if (end - start > MAX_LINE)
		line.end = start + MAX_LINE;
	s->line_start = start;
	s->line_end = end;
	for (const struct fathom_log_format *f = fathom_log_formats; f->name; f++) {
		const size_t before = s->numbers.n;

		if (!f->read(s, line))
			continue;
		for (size_t i = before; i < s->numbers.n; i++)
			s->numbers.items[i].format = f->name;
		return;
	}
}

/* Copies the texts of the modules of @m that count, and frees those of the others. */
static void drop_stale_texts(struct fathom_log_scan *s, struct fathom_log_markup *m)
{
	struct fathom_arena texts = { NULL, 0 };

	for (size_t i = 0; i < m->modules.n; i++) {
		struct fathom_log_markup_module *module = &m->modules.items[i];

		module->name.data = fathom_arena_strdup(&texts, module->name);
		module->build_id.data = fathom_arena_strdup(&texts, module->build_id);
		if (!module->name.data || !module->build_id.data) {
			module->name.size = module->build_id.size = 0;
			s->failed = true;
		}
	}
	fathom_arena_deinit(&m->texts);
	m->texts = texts;
	m->n_texts = m->modules.n;
}

/* Forgets the lines before, but for what they said of later ones. */
static void begin(struct fathom_log_scan *s)
{
	s->numbers.n = 0;
	s->facts.n = 0;
	s->process_line = NULL;
	free(s->former_path);
	s->former_path = NULL;
	fathom_arena_deinit(&s->former_counter_texts);
	s->former_counter_texts = (struct fathom_arena){ NULL, 0 };
	for (size_t i = 0; i < s->n_markups; i++)
		if (s->markups[i].n_texts > s->markups[i].modules.n + MAX_STALE)
			drop_stale_texts(s, &s->markups[i]);
	if (s->build_ids.n < MAX_BUILD_IDS)
		return;
	fathom_array_free(&s->build_ids);
	fathom_key_map_deinit(&s->build_id_numbers);
	s->build_id_numbers = (struct fathom_key_map){ NULL, 0, 0 };
	fathom_arena_deinit(&s->build_id_texts);
	s->build_id_texts = (struct fathom_arena){ NULL, 0 };
}

/* Copies the path that later lines may mean: the text is the caller's. */
static void keep_path(struct fathom_log_scan *s)
{
	if (s->path.data == s->kept_path)
		return;
	s->former_path = s->kept_path;
	/* It may hold NULs. */
	s->kept_path = malloc((size_t)s->path.size + 1);
	s->failed |= !s->kept_path;
	if (s->kept_path)
		memcpy(s->kept_path, s->path.data, s->path.size);
	s->path = (struct fathom_str){ s->kept_path, s->kept_path ? s->path.size : 0 };
}

/* Copies the texts of the program counter whose code later lines may have. */
static void keep_counter(struct fathom_log_scan *s)
{
	struct fathom_log_number *n = &s->counter.number;
	struct fathom_str *const texts[] = { &n->module, &n->build_id, &n->symbol };

	s->counter.index = SIZE_MAX;
	if (s->counter.is_kept)
		return;
	s->former_counter_texts = s->counter_texts;
	s->counter_texts = (struct fathom_arena){ NULL, 0 };
	s->counter.is_kept = true;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		if (!texts[i]->data)
			continue;
		texts[i]->data = fathom_arena_strdup(&s->counter_texts, *texts[i]);
		s->failed |= !texts[i]->data;
		s->counter.is_known &= texts[i]->data != NULL;
	}
}

fathom_err fathom_log_scan_lines(struct fathom_log_scan *s, const char *text, size_t size,
				 struct fathom_errinfo *reterr)
{
	const char *const stop = text + size;
	const char *counted = text;
	const char *at = text;

	begin(s);
	s->text = text;
	while ((at = fathom_log_find_anchor(text, at, stop)) < stop) {
		const char *before = memrchr(counted, '\n', (size_t)(at - counted));
		const char *start = before ? before + 1 : counted;
		const char *after = memchr(at, '\n', (size_t)(stop - at));
		const char *end = after ? after : stop;

		s->line += count_breaks(counted, start);
		read_line(s, start, end > start && after && end[-1] == '\r' ? end - 1 : end);
		counted = start;
		at = stop;
		if (after) {
			s->line++;
			at = counted = after + 1;
		}
	}
	s->line += count_breaks(counted, stop);
	keep_path(s);
	keep_counter(s);
	return s->failed ? fathom_fail_memory(reterr) : FATHOM_OK;
}

uint64_t fathom_log_process(struct fathom_log_scan *s)
{
	if (s->process_line != s->line_start) {
		s->process_line = s->line_start;
		s->process = fathom_line_process(s->line_start, s->line_end);
	}
	return s->process;
}

void fathom_log_add(struct fathom_log_scan *s, const struct fathom_log_number *number)
{
	struct fathom_log_number n = *number;

	n.line = s->line + 1;
	n.line_start = s->line_start;
	n.line_end = s->line_end;
	n.process = fathom_log_process(s);
	if (!fathom_array_push(&s->numbers, n))
		s->failed = true;
}

void fathom_log_note_counter(struct fathom_log_scan *s, const struct fathom_log_number *number)
{
	struct fathom_log_counter *c = &s->counter;
	const bool is_near = c->n_open && s->line - c->line <= MAX_MIXED;

	*c = (struct fathom_log_counter){
		.line = s->line,
		.index = s->numbers.n - 1,
		.n_open = is_near ? c->n_open + 1 : 1,
		.is_known = number != NULL,
		.is_mixed = is_near,
	};
	if (number)
		c->number = *number;
}

void fathom_log_add_fact(struct fathom_log_scan *s, const struct fathom_log_place *place)
{
	const struct fathom_log_fact fact = { *place, s->line_start, s->line_end,
					      fathom_log_process(s) };

	if (!fathom_array_push(&s->facts, fact))
		s->failed = true;
}

void fathom_log_scan_deinit(struct fathom_log_scan *s)
{
	fathom_array_free(&s->numbers);
	fathom_array_free(&s->facts);
	fathom_array_free(&s->build_ids);
	fathom_key_map_deinit(&s->build_id_numbers);
	fathom_arena_deinit(&s->build_id_texts);
	for (size_t i = 0; i < s->n_markups; i++) {
		fathom_array_free(&s->markups[i].modules);
		fathom_array_free(&s->markups[i].mmaps);
		fathom_arena_deinit(&s->markups[i].texts);
	}
	fathom_arena_deinit(&s->counter_texts);
	fathom_arena_deinit(&s->former_counter_texts);
	free(s->kept_path);
	free(s->former_path);
}
