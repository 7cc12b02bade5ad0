/* SPDX-License-Identifier: MIT */
/*
 * Files of speedscope: JSON, as https://www.speedscope.app/file-format-schema.json describes it. A
 * thread is a profile of the kind "sampled": stacks in the order of time, each with a weight.
 * Stacks that are equal and follow each other are one with the sum of their weights.
 *
 * A frame is a function at a line. The format has no place for modules, build-ids, and times in
 * which nothing was sampled.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fathom/version.h"
#include "host/events/escape.h"
#include "host/exchange/timed_samples.h"
#include "safe/base/error.h"

struct speedscope {
	struct fathom_trace_writer w;
	struct fathom_report_rows rows;
	struct fathom_frame_stacks stacks;
	struct fathom_timed_samples samples;
	uint32_t *same;                /* of stacks */
	uint32_t *numbers;             /* by frame: its number in the file + 1; 0: none yet */
	struct fathom_u32_array used;  /* frames by that number */
	struct fathom_u32_array stack; /* the one that is written */
	struct fathom_bytes_array name;
	const char *unit;
};

/* Maps that find equal frames. */
struct equal {
	struct fathom_key_map lines;   /* by file and line */
	struct fathom_key_map columns; /* by the number of these, and column */
	struct fathom_key_map frames;  /* by row and the number of that */
};

static uint64_t pair(uint32_t upper, uint32_t lower)
{
	return (uint64_t)upper << 32 | lower;
}

/* Returns the number of @key in @map, a new one if it has none; @fresh is that. */
static uint32_t number_of(struct speedscope *p, struct fathom_key_map *map, uint64_t key,
			  uint32_t fresh)
{
	uint32_t *number = fathom_key_map_at(map, key);

	if (!number) {
		p->w.no_memory = true;
		return 0;
	}
	if (*number == FATHOM_KEY_NEW)
		*number = fresh;
	return *number;
}

/* Finds the frame that stands for each: the first one of the same function, file, line, column. */
static void join_frames(struct speedscope *p)
{
	struct equal e = { .lines = { .n = 0 } };
	const size_t n = fathom_frame_count(&p->rows);

	for (uint32_t i = 0; i < n && !p->w.no_memory; i++) {
		const struct fathom_frame_facts f = fathom_frame_facts_of(&p->rows, i);
		const char *file = f.debug ? f.debug->file : NULL;
		const uint32_t text = fathom_report_number_text(&p->rows, file);
		uint32_t place = number_of(p, &e.lines, pair(text, f.debug ? f.debug->line : 0),
					   (uint32_t)e.lines.n);

		place = number_of(p, &e.columns, pair(place, f.debug ? f.debug->column : 0),
				  (uint32_t)e.columns.n);
		p->same[i] = number_of(p, &e.frames, pair(f.row_number, place), i);
		p->w.no_memory |= p->rows.no_memory;
	}
	fathom_key_map_deinit(&e.lines);
	fathom_key_map_deinit(&e.columns);
	fathom_key_map_deinit(&e.frames);
}

static void put_member(struct speedscope *p, const char *key, const char *text)
{
	fathom_writer_str(&p->w, key);
	fathom_writer_json(&p->w, text);
}

static void put_number(struct speedscope *p, const char *key, uint64_t value)
{
	fathom_writer_str(&p->w, key);
	fathom_writer_dec(&p->w, value);
}

/* Returns the number in the file of @frame. */
static uint32_t frame_number(struct speedscope *p, uint32_t frame)
{
	if (!p->numbers[frame]) {
		p->w.no_memory |= !fathom_array_push(&p->used, frame);
		p->numbers[frame] = (uint32_t)p->used.n;
	}
	return p->numbers[frame] - 1;
}

/* Writes the frames of stack @i, the outermost first. */
static void put_stack(struct speedscope *p, uint32_t i)
{
	p->stack.n = 0;
	for (; i && !p->w.no_memory; i = p->stacks.items[i].caller)
		p->w.no_memory |= !fathom_array_push(&p->stack, p->stacks.items[i].frame);
	fathom_writer_str(&p->w, "[");
	while (p->stack.n && !p->w.no_memory) {
		fathom_writer_dec(&p->w, frame_number(p, p->stack.items[--p->stack.n]));
		fathom_writer_str(&p->w, p->stack.n ? "," : "");
	}
	fathom_writer_str(&p->w, "]");
	fathom_writer_pass_on(&p->w);
}

/* Returns the end of the samples from @i on, up to @end, that have its stack; and their weight. */
static size_t run_of(const struct speedscope *p, size_t i, size_t end, uint64_t *ret_weight)
{
	const struct fathom_timed_sample *s = p->samples.items;
	const uint32_t stack = s[i].stack;

	for (*ret_weight = 0; i < end && s[i].stack == stack; i++)
		*ret_weight += s[i].weight;
	return i;
}

/* Writes "NAME (PID/TID)". */
static void put_thread_name(struct speedscope *p, const struct fathom_report_row *thread)
{
	char numbers[32];

	(void)snprintf(numbers, sizeof numbers, " (%d/%d)", (int)thread->pid, (int)thread->tid);
	p->name.n = 0;
	p->w.no_memory |= !fathom_frame_spell_text(&p->name, thread->name) ||
			  !fathom_frame_spell_text(&p->name, numbers);
	if (!p->w.no_memory)
		put_member(p, "{\"type\":\"sampled\",\"name\":", p->name.items);
}

static bool goes_on(struct speedscope *p)
{
	p->stacks.is_cancelled |= !fathom_keeps_pace(&p->stacks.pace);
	return !p->stacks.is_cancelled && !p->w.no_memory && !p->w.has_failed;
}

/* Writes the samples from @begin to @end, which are of one thread. */
static void put_thread(struct speedscope *p, size_t begin, size_t end)
{
	uint64_t sum = 0;
	uint64_t weight;

	put_thread_name(p, &p->rows.items[p->samples.items[begin].thread]);
	for (size_t i = begin; i < end; i++)
		sum += p->samples.items[i].weight;
	put_member(p, ",\"unit\":", p->unit);
	put_number(p, ",\"startValue\":0,\"endValue\":", sum);
	fathom_writer_str(&p->w, ",\"samples\":[");
	for (size_t i = begin; i < end && goes_on(p); i = run_of(p, i, end, &weight)) {
		fathom_writer_str(&p->w, i == begin ? "\n" : ",\n");
		put_stack(p, p->samples.items[i].stack);
	}
	fathom_writer_str(&p->w, "],\"weights\":[");
	for (size_t i = begin, next; i < end && goes_on(p); i = next) {
		next = run_of(p, i, end, &weight);
		put_number(p, i == begin ? "" : ",", weight);
		fathom_writer_pass_on(&p->w);
	}
	fathom_writer_str(&p->w, "]}");
}

static void put_frame(struct speedscope *p, uint32_t frame)
{
	const struct fathom_frame_facts f = fathom_frame_facts_of(&p->rows, frame);

	p->name.n = 0;
	p->w.no_memory |= !fathom_frame_spell(&p->name, f.row);
	if (p->w.no_memory)
		return;
	put_member(p, "{\"name\":", p->name.items);
	if (f.debug && f.debug->file)
		put_member(p, ",\"file\":", f.debug->file);
	if (f.debug && f.debug->line)
		put_number(p, ",\"line\":", f.debug->line);
	if (f.debug && f.debug->column)
		put_number(p, ",\"col\":", f.debug->column);
	fathom_writer_str(&p->w, "}");
	fathom_writer_pass_on(&p->w);
}

static void put_all(struct speedscope *p)
{
	const struct fathom_profile_info *info = &p->rows.profile->info;

	put_member(p, "{\"$schema\":", "https://www.speedscope.app/file-format-schema.json");
	fathom_writer_str(&p->w, ",\"exporter\":\"fathom ");
	fathom_writer_str(&p->w, fathom_version());
	put_member(p, "\",\"name\":", info->command);
	fathom_writer_str(&p->w, ",\"activeProfileIndex\":0,\"profiles\":[");
	for (size_t i = 0, end; i < p->samples.n && goes_on(p); i = end) {
		end = fathom_timed_samples_end(&p->samples, i);
		fathom_writer_str(&p->w, i ? ",\n" : "\n");
		put_thread(p, i, end);
	}
	fathom_writer_str(&p->w, "],\n\"shared\":{\"frames\":[");
	for (size_t i = 0; i < p->used.n && goes_on(p); i++) {
		fathom_writer_str(&p->w, i ? ",\n" : "\n");
		put_frame(p, p->used.items[i]);
	}
	fathom_writer_str(&p->w, "]}}\n");
}

/* Makes what is written, from the rows, which are made; writes it. */
static fathom_err write_file(void *data, struct fathom_errinfo *reterr)
{
	struct speedscope *p = data;
	const size_t n = fathom_frame_count(&p->rows) + 1;

	p->same = calloc(n, sizeof *p->same);
	p->numbers = calloc(n, sizeof *p->numbers);
	if (!p->same || !p->numbers)
		return fathom_fail_memory(reterr);
	join_frames(p);
	if (p->w.no_memory)
		return fathom_fail_memory(reterr);
	p->stacks.same = p->same;
	FATHOM_TRY(fathom_timed_samples_init(&p->samples, &p->stacks, false, reterr));
	put_all(p);
	return fathom_frame_stacks_end(&p->stacks, reterr);
}

fathom_err fathom_export_speedscope(const struct fathom_export *e, struct fathom_errinfo *reterr)
{
	const bool is_time = e->options->time || strcmp(e->profile->info.unit, "ns") == 0;
	struct speedscope p = { .unit = is_time ? "nanoseconds" : "none" };
	const fathom_err err =
		fathom_export_threads(e, &p.w, &p.rows, &p.stacks, write_file, &p, reterr);

	fathom_timed_samples_deinit(&p.samples);
	fathom_array_free(&p.used);
	fathom_array_free(&p.stack);
	fathom_array_free(&p.name);
	free(p.same);
	free(p.numbers);
	return err;
}
