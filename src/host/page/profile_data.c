/* SPDX-License-Identifier: MIT */
/*
 * Profiles as pages: one profile, or two that are compared, which share functions and nodes. The
 * columns stand in the order in which page/data.js reads them.
 *
 * Filters are those of reports, and so are the rows of what has no place. All times are written,
 * whichever the options choose: the page switches between them.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fathom/stack.h"
#include "host/base/option_struct.h"
#include "host/base/progress.h"
#include "host/exchange/exporting.h"
#include "host/page/html_file.h"
#include "host/page/summed_samples.h"
#include "host/page/merged_tree.h"
#include "host/profile/compared_modules.h"
#include "host/profile/compared_reasons.h"
#include "host/profile/report_leaves.h"
#include "host/profile/samples_format.h"
#include "safe/base/error.h"

/* Steps before the caller is asked whether to go on. */
#define PACE (1 << 18)
/* State of a node that is no node of the page: its stack has not reached a function of `under`. */
#define OUTSIDE UINT32_MAX
/* Modules without names that are listed. */
#define NAMELESS_TOLD 20

/* Kinds of functions in the page: those of modules, and what is no code. */
enum { KIND_NO_CODE = 7 };

/* The columns, in the order of the file; texts are the last one. */
enum {
	FACT_SIDE,
	FACT_KEY,
	FACT_TEXT,
	FUNCTION_NAME,
	FUNCTION_LINKAGE,
	FUNCTION_MODULE,
	FUNCTION_KIND,
	PLACE_FILE,
	PLACE_LINE,
	NODE_PARENT,
	NODE_FUNCTION,
	THREAD_SIDE,
	THREAD_PID,
	THREAD_TID,
	THREAD_NAME,
	THREAD_PROCESS,
	SAMPLE_NS,
	SAMPLE_WEIGHT,
	SAMPLE_THREAD,
	SAMPLE_NODE,
	SAMPLE_PLACE,
	SAMPLE_PART,
	SAMPLE_COUNT,
	TEXTS,
	COLUMNS
};

/* One of the profiles. */
struct side {
	const struct fathom_profile *profile;
	struct fathom_report_rows rows;
	bool has_rows;                  /* of the functions that are chosen */
	uint32_t first_thread;          /* its threads follow those of the other profile */
	uint32_t *functions;            /* by row: numbers in the page; FATHOM_KEY_NEW: none yet */
	struct fathom_key_map kinds;    /* of modules, by the text of the path */
	struct fathom_key_map states;   /* nodes of the page plus 1, by node and stop */
	uint32_t spare;                 /* a state without memory */
	struct fathom_u32_array walked; /* nodes of the stack that is followed */
};

struct page {
	const struct fathom_report_options *options;
	struct side sides[2];
	size_t n_sides;
	struct fathom_compared_modules modules; /* of two */
	struct fathom_page_texts texts;
	struct fathom_page_column columns[COLUMNS];
	struct fathom_page_tree tree;
	struct fathom_page_samples samples;
	struct fathom_key_map by_name;  /* functions by name and module */
	struct fathom_key_map by_place; /* places by file and line */
	struct fathom_pace pace;
	uint32_t n_functions;
	bool no_memory;
	bool is_cancelled;
};

/* A sample that is on its way into the page. */
struct adding {
	struct page *page;
	struct side *side;
};

static uint32_t text(struct page *p, const char *s)
{
	return fathom_page_text(&p->texts, s);
}

static void put(struct page *p, unsigned column, uint64_t value)
{
	fathom_page_put(&p->columns[column], value);
}

__attribute__((format(printf, 4, 5))) static void fact(struct page *p, size_t side, const char *key,
						       const char *format, ...)
{
	char *value = NULL;
	va_list list;

	va_start(list, format);
	if (vasprintf(&value, format, list) < 0)
		value = NULL;
	va_end(list);
	if (!value) {
		p->no_memory = true;
		return;
	}
	if (*value) {
		put(p, FACT_SIDE, side);
		put(p, FACT_KEY, text(p, key));
		put(p, FACT_TEXT, text(p, value));
	}
	free(value);
}

/* Returns where the kind of the module @path is stored; FATHOM_KEY_NEW: not yet. */
static uint32_t *kind_at(struct page *p, struct side *side, const char *path)
{
	uint32_t *kind = fathom_key_map_at(&side->kinds, text(p, path));

	p->no_memory |= !kind;
	return kind ? kind : &side->spare;
}

static void add_kinds(struct page *p, struct side *side)
{
	for (size_t i = 0; i < side->profile->n_modules; i++)
		*kind_at(p, side, side->profile->modules[i].path) = side->profile->modules[i].kind;
}

/* Returns the kind of the function at @row. */
static uint32_t kind_of(struct page *p, struct side *side, const struct fathom_report_row *row)
{
	const uint32_t *kind = row->module ? kind_at(p, side, row->module) : NULL;

	if (row->kind != FATHOM_REPORT_ROW_CODE)
		return KIND_NO_CODE;
	return kind && *kind != FATHOM_KEY_NEW ? *kind : 0;
}

/* Returns the number in the page of the function at @row of @side. */
static uint32_t add_function(struct page *p, struct side *side, const struct fathom_report_row *row)
{
	const struct fathom_compared_module *match =
		p->n_sides > 1 && row->module
			? fathom_compared_modules_find(&p->modules, row->module)
			: NULL;
	const uint32_t kind = kind_of(p, side, row);
	char reason[FATHOM_PROFILE_REASON];
	const char *name = row->name;
	uint32_t linked, *number;

	if (match && kind == FATHOM_PROFILE_MODULE_WAITS) {
		fathom_reason_generalize(name, reason, sizeof reason);
		name = reason;
	}
	linked = text(p, row->linkage_name ? row->linkage_name : name);
	number = fathom_key_map_at(&p->by_name,
				   (uint64_t)linked << 32 |
					   (match ? match->match + 1 : text(p, row->module)));
	if (!number || p->texts.no_memory) {
		p->no_memory = true;
		return 0;
	}
	if (*number != FATHOM_KEY_NEW)
		return *number;
	*number = p->n_functions++;
	put(p, FUNCTION_NAME, text(p, name));
	put(p, FUNCTION_LINKAGE, linked);
	put(p, FUNCTION_MODULE, text(p, match ? match->name : row->module));
	put(p, FUNCTION_KIND, kind);
	return *number;
}

static uint32_t function_of(struct page *p, struct side *side, uint32_t row)
{
	uint32_t *number = &side->functions[row];

	if (*number == FATHOM_KEY_NEW)
		*number = add_function(p, side, &side->rows.items[row]);
	return *number;
}

static uint32_t child(struct page *p, struct side *side, uint32_t parent, uint32_t row)
{
	return fathom_page_child(&p->tree, parent, function_of(p, side, row));
}

/* Returns whether to go on. */
static bool keeps_on(struct page *p)
{
	if (!fathom_keeps_pace(&p->pace))
		p->is_cancelled = true;
	return !p->is_cancelled && !p->no_memory && !p->tree.no_memory && !p->tree.is_too_large;
}

/* Returns the state after the frames of @location, which are called in @state. */
static uint32_t call(struct page *p, struct side *side, uint32_t state, uint32_t location)
{
	uint32_t n;
	const struct fathom_report_frame *frames = fathom_report_chain(&side->rows, location, &n);

	while (n-- && keeps_on(p)) {
		if (state == OUTSIDE && frames[n].chosen & FATHOM_REPORT_UNDER)
			state = 0;
		if (state != OUTSIDE && frames[n].chosen & FATHOM_REPORT_WANTED)
			state = child(p, side, state, frames[n].row);
	}
	return state;
}

/* Returns where the state of @node is stored, plus 1, of stacks that end for @stop. */
static uint32_t *state_at(struct page *p, struct side *side, uint32_t node, uint8_t stop)
{
	uint32_t *state = fathom_key_map_at(&side->states, (uint64_t)node << 8 | stop);

	p->no_memory |= !state;
	return state ? state : &side->spare;
}

/* Returns the node of the page for a stack from @node on: that of its last frame, or OUTSIDE. */
static uint32_t state_of(struct page *p, struct side *side, uint32_t node, uint8_t stop)
{
	const struct fathom_report_rows *r = &side->rows;
	const struct fathom_profile_node *nodes = side->profile->nodes;
	uint32_t state = r->has_under ? OUTSIDE : 0;

	side->walked.n = 0;
	for (; node && *state_at(p, side, node, stop) == FATHOM_KEY_NEW && keeps_on(p);
	     node = nodes[node].caller)
		p->no_memory |= !fathom_array_push(&side->walked, node);
	if (!keeps_on(p))
		return OUTSIDE;
	if (node)
		state = *state_at(p, side, node, stop) - 1;
	else if (stop != FATHOM_STOP_ENTRY && !r->has_under && r->has_own)
		state = child(p, side, 0, r->incomplete[stop]);
	for (size_t i = side->walked.n; i-- > 0 && keeps_on(p);) {
		state = call(p, side, state, nodes[side->walked.items[i]].location);
		*state_at(p, side, side->walked.items[i], stop) = state + 1;
	}
	return state;
}

/* Returns the number of the source line that @node is in, 0 if that is not known or not shown. */
static uint32_t place_of(struct page *p, struct side *side, uint32_t node)
{
	const uint32_t location = side->profile->nodes[node].location;
	const struct fathom_frame *f = side->profile->locations[location].answer->frame;
	uint32_t n, *number;
	const struct fathom_report_frame *frames = fathom_report_chain(&side->rows, location, &n);

	if (!n || !(frames->chosen & FATHOM_REPORT_WANTED) || !f || !f->file || !f->line)
		return 0;
	number = fathom_key_map_at(&p->by_place, (uint64_t)text(p, f->file) << 32 | f->line);
	if (!number) {
		p->no_memory = true;
		return 0;
	}
	if (*number == FATHOM_KEY_NEW) {
		*number = (uint32_t)p->columns[PLACE_FILE].n + 1;
		put(p, PLACE_FILE, text(p, f->file));
		put(p, PLACE_LINE, f->line);
	}
	return *number;
}

/* Returns whether @part is of the time that the page shows at first. */
static bool is_first(const struct page *p, uint8_t part)
{
	return p->options->time == FATHOM_REPORT_WALL ||
	       fathom_profile_is_wait(part) == (p->options->time == FATHOM_REPORT_WAITING);
}

static int add_sample(void *data, const struct fathom_profile_sample *s)
{
	const struct adding *a = data;
	struct page *p = a->page;
	struct side *side = a->side;
	struct fathom_page_sample one = { .ns = s->ns, .weight = s->weight, .n = 1 };
	struct fathom_report_leaf leaf;
	uint32_t state;

	if (!keeps_on(p))
		return 1;
	if (!fathom_report_is_within(p->options, s->ns))
		return 0;
	fathom_report_leaf_of(&side->rows, s, &leaf);
	state = state_of(p, side, leaf.node, leaf.stop);
	if (state == OUTSIDE)
		return 0;
	if (leaf.part == FATHOM_PROFILE_UNSAMPLED && side->rows.has_own)
		state = child(p, side, state, side->rows.unsampled);
	else if (leaf.part == FATHOM_PROFILE_KERNEL_HIDDEN && side->rows.has_own)
		state = child(p, side, state, side->rows.hidden);
	else if (leaf.node)
		one.place = place_of(p, side, leaf.node);
	if (!state)
		return 0;
	p->tree.items[state].weights[!is_first(p, leaf.part)] += s->weight;
	one.node = state;
	one.part = leaf.part;
	one.thread = side->first_thread + s->thread;
	fathom_page_samples_add(&p->samples, &one);
	return p->samples.no_memory || p->samples.is_too_large;
}

static void put_threads(struct page *p, const struct side *side)
{
	for (size_t i = 0; i < side->profile->n_threads; i++) {
		const struct fathom_profile_thread *t = &side->profile->threads[i];

		put(p, THREAD_SIDE, (uint64_t)(side - p->sides));
		put(p, THREAD_PID, (uint32_t)t->pid);
		put(p, THREAD_TID, (uint32_t)t->tid);
		put(p, THREAD_NAME, text(p, t->name));
		put(p, THREAD_PROCESS, text(p, t->process));
	}
}

/* Writes the modules that name nothing, and why. */
static void put_nameless(struct page *p, size_t side)
{
	const struct fathom_profile *profile = p->sides[side].profile;
	uint8_t *reasons = calloc(profile->n_modules + 1, 1);
	unsigned told = 0;

	if (!reasons) {
		p->no_memory = true;
		return;
	}
	for (size_t i = 0; i < profile->n_locations; i++) {
		const struct fathom_profile_location *l = &profile->locations[i];

		if (l->module != UINT32_MAX && !l->answer->symbol &&
		    l->answer->reason != FATHOM_REASON_NO_SYMBOLS)
			reasons[l->module] = l->answer->reason;
	}
	for (size_t i = 0; i < profile->n_modules; i++) {
		if (!reasons[i] || ++told > NAMELESS_TOLD)
			continue;
		fact(p, side, "nameless", "%s (%s)", profile->modules[i].path,
		     fathom_reason_name((enum fathom_reason)reasons[i]));
	}
	if (told > NAMELESS_TOLD)
		fact(p, side, "nameless", "and %u others", told - NAMELESS_TOLD);
	free(reasons);
}

static void put_facts(struct page *p, size_t side)
{
	const struct fathom_profile_info *info = &p->sides[side].profile->info;

	fact(p, side, "command", "%s", info->command);
	fact(p, side, "event", "%s", info->event);
	fact(p, side, "unit", "%s", info->unit);
	fact(p, side, "method", "%s", info->method);
	fact(p, side, "machine", "%s", info->machine);
	fact(p, side, "kernel", "%s", info->kernel);
	fact(p, side, "host", "%s", info->host);
	fact(p, side, "frequency", "%" PRIu32, info->frequency);
	fact(p, side, "complete", "%u", info->is_complete);
	fact(p, side, "kernel-hidden", "%u", info->is_kernel_hidden);
	fact(p, side, "started", "%" PRIu64, info->started);
	fact(p, side, "duration", "%" PRIu64, info->duration_ns);
	fact(p, side, "weight", "%" PRIu64, info->weight);
	fact(p, side, "samples", "%" PRIu64, info->n_samples);
	fact(p, side, "stacks", "%" PRIu64, info->n_stacks);
	fact(p, side, "whole", "%" PRIu64, info->n_whole);
	fact(p, side, "lost", "%" PRIu64, info->lost);
	fact(p, side, "throttled", "%" PRIu64, info->throttled);
	fact(p, side, "waiting", "%" PRIu64, info->waiting_ns);
	fact(p, side, "runnable", "%" PRIu64, info->runnable_ns);
	fact(p, side, "waits", "%" PRIu64, info->n_waits);
	put_nameless(p, side);
}

/* Writes what the options leave out. */
static void put_filters(struct page *p)
{
	const struct fathom_report_options *o = p->options;

	for (size_t i = 0; i < o->n_only; i++)
		fact(p, 0, "filter", "only %s", o->only[i]);
	for (size_t i = 0; i < o->n_except; i++)
		fact(p, 0, "filter", "not %s", o->except[i]);
	for (size_t i = 0; i < o->n_under; i++)
		fact(p, 0, "filter", "under %s", o->under[i]);
	if (o->from_ns)
		fact(p, 0, "filter", "from %" PRIu64 ".%09" PRIu64 " s", o->from_ns / 1000000000,
		     o->from_ns % 1000000000);
	if (o->to_ns)
		fact(p, 0, "filter", "to %" PRIu64 ".%09" PRIu64 " s", o->to_ns / 1000000000,
		     o->to_ns % 1000000000);
	fact(p, 0, "time", "%" PRIu32, o->time);
	if (p->samples.slice)
		fact(p, 0, "slice", "%" PRIu64, p->samples.slice);
}

static void put_samples(struct page *p)
{
	for (size_t i = 0; i < p->samples.n; i++) {
		const struct fathom_page_sample *s = &p->samples.items[i];

		fathom_page_put_delta(&p->columns[SAMPLE_NS], s->ns);
		put(p, SAMPLE_WEIGHT, s->weight);
		put(p, SAMPLE_THREAD, s->thread);
		fathom_page_put_delta(&p->columns[SAMPLE_NODE], p->tree.items[s->node].number);
		put(p, SAMPLE_PLACE, s->place);
		put(p, SAMPLE_PART, s->part);
		put(p, SAMPLE_COUNT, s->n);
	}
}

/* Reads the samples of a profile. */
static fathom_err read_side(struct page *p, struct side *side, struct fathom_errinfo *reterr)
{
	struct adding a = { p, side };

	side->functions = malloc((side->rows.n + 1) * sizeof *side->functions);
	if (!side->functions)
		return fathom_fail_memory(reterr);
	memset(side->functions, 0xff, (side->rows.n + 1) * sizeof *side->functions);
	put_threads(p, side);
	add_kinds(p, side);
	(void)fathom_goes_on(side->profile->session, FATHOM_PHASE_READ, 0, 0);
	return fathom_profile_each_sample(side->profile, add_sample, &a, reterr);
}

/* Returns the error of what was collected. */
static fathom_err check(const struct page *p, struct fathom_errinfo *reterr)
{
	bool no_memory =
		p->no_memory || p->tree.no_memory || p->samples.no_memory || p->texts.no_memory;

	if (p->is_cancelled)
		return fathom_fail(reterr, FATHOM_E_CANCELLED, "", 0, "the caller has given it up");
	for (unsigned i = 0; i < COLUMNS; i++)
		no_memory |= p->columns[i].no_memory;
	if (no_memory)
		return fathom_fail_memory(reterr);
	return p->tree.is_too_large || p->samples.is_too_large
		       ? fathom_fail_by(reterr, FATHOM_E_LIMIT, FATHOM_CAUSE_BUDGET,
					"the page does not fit the memory budget")
		       : FATHOM_OK;
}

/* Makes all columns. */
static fathom_err collect(struct page *p, struct fathom_errinfo *reterr)
{
	fathom_page_tree_init(&p->tree);
	(void)text(p, "");
	fact(p, 0, "kind", "%s", p->n_sides > 1 ? "diff" : "profile");
	for (size_t i = 0; i < p->n_sides; i++) {
		put_facts(p, i);
		if (p->sides[i].has_rows)
			FATHOM_TRY(read_side(p, &p->sides[i], reterr));
		FATHOM_TRY(check(p, reterr));
	}
	put_filters(p);
	fathom_page_tree_number(&p->tree);
	FATHOM_TRY(check(p, reterr));
	fathom_page_tree_put(&p->tree, &p->columns[NODE_PARENT], &p->columns[NODE_FUNCTION]);
	fathom_page_samples_sort(&p->samples);
	put_samples(p);
	fathom_page_put_texts(&p->columns[TEXTS], &p->texts);
	return check(p, reterr);
}

static fathom_err write_page(struct page *p, fathom_profile_write_fn write, void *data,
			     struct fathom_errinfo *reterr)
{
	struct fathom_page_file f = { .write = write, .data = data };

	FATHOM_TRY(collect(p, reterr));
	fathom_page_file_begin(&f);
	for (unsigned i = 0; i < COLUMNS; i++)
		fathom_page_file_put(&f, &p->columns[i]);
	fathom_page_file_end(&f);
	if (f.gzip.has_failed)
		return fathom_export_fail_write(reterr);
	return f.gzip.no_memory ? fathom_fail_memory(reterr) : FATHOM_OK;
}

static void deinit(struct page *p)
{
	for (size_t i = 0; i < p->n_sides; i++) {
		fathom_report_rows_deinit(&p->sides[i].rows);
		fathom_key_map_deinit(&p->sides[i].kinds);
		fathom_key_map_deinit(&p->sides[i].states);
		fathom_array_free(&p->sides[i].walked);
		free(p->sides[i].functions);
	}
	if (p->n_sides > 1)
		fathom_compared_modules_deinit(&p->modules);
	for (unsigned i = 0; i < COLUMNS; i++)
		fathom_page_column_deinit(&p->columns[i]);
	fathom_page_texts_deinit(&p->texts);
	fathom_page_tree_deinit(&p->tree);
	fathom_page_samples_deinit(&p->samples);
	fathom_key_map_deinit(&p->by_name);
	fathom_key_map_deinit(&p->by_place);
}

/* Adds @profile to the page. */
static fathom_err add_side(struct page *p, const struct fathom_profile *profile,
			   struct fathom_errinfo *reterr)
{
	struct side *side = &p->sides[p->n_sides++];
	fathom_err err;

	side->profile = profile;
	side->rows = (struct fathom_report_rows){ .profile = profile, .options = p->options };
	side->first_thread = side > p->sides ? (uint32_t)p->sides[0].profile->n_threads : 0;
	p->tree.memory = p->samples.memory = &profile->session->memory;
	if (profile->info.duration_ns > p->samples.duration)
		p->samples.duration = profile->info.duration_ns;
	err = fathom_report_rows_init(&side->rows, reterr);
	side->has_rows = !err;
	return err;
}

fathom_err fathom_export_page(const struct fathom_export *e, struct fathom_errinfo *reterr)
{
	const struct fathom_profile *const profiles[2] = { e->profile, e->other };
	struct page p = { .options = e->options,
			  .samples = { .most = FATHOM_PAGE_SAMPLES },
			  .pace = fathom_pace_init(e->profile->session, PACE) };
	fathom_err err = FATHOM_OK;
	bool has_rows = false;

	for (size_t i = 0; i < (e->other ? 2 : 1) && (!err || err == FATHOM_E_NOT_FOUND); i++) {
		err = add_side(&p, profiles[i], reterr);
		has_rows |= !err;
	}
	/* Of two profiles, one may lack the functions that are asked for. */
	if (err == FATHOM_E_NOT_FOUND && has_rows)
		err = FATHOM_OK;
	if (!err && e->other && !fathom_compared_modules_init(&p.modules, profiles))
		err = fathom_fail_memory(reterr);
	if (!err)
		err = write_page(&p, e->write, e->data, reterr);
	deinit(&p);
	return err;
}
