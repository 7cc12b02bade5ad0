/* SPDX-License-Identifier: MIT */
/*
 * Profiles as pages: one profile, or two that are compared, which share functions and nodes.
 *
 * Filters are those of reports, and so are the rows of what has no place. All times are written,
 * whichever the options choose: the page switches between them.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fathom/stack.h"
#include "host/base/option_struct.h"
#include "host/base/progress.h"
#include "host/exchange/exporting.h"
#include "host/page/source_data.h"
#include "host/profile/compared_modules.h"
#include "host/profile/compared_reasons.h"
#include "host/profile/report_leaves.h"
#include "host/profile/samples_format.h"
#include "safe/base/error.h"

/* Steps before the caller is asked whether to go on. */
#define PACE (1 << 18)
/* State of a node that is no node of the page: its stack has not reached a function of `under`. */
#define OUTSIDE UINT32_MAX
/* Bit of the keys of places that have a spot; texts are never so many. */
#define SPOT_KEY (UINT64_C(1) << 63)
/* Modules without names that are listed. */
#define NAMELESS_TOLD 20

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
	struct fathom_page_source source;
};

struct page {
	const struct fathom_report_options *options;
	struct side sides[2];
	size_t n_sides;
	struct fathom_compared_modules modules; /* of two */
	struct fathom_page_data data;
	struct fathom_key_map by_place; /* places by spot, or file and line */
	uint32_t n_spots;               /* of all sides */
	struct fathom_pace pace;
	bool is_cancelled;
};

/* A sample that is on its way into the page. */
struct adding {
	struct page *page;
	struct side *side;
};

static uint32_t text(struct page *p, const char *s)
{
	return fathom_page_text(&p->data.texts, s);
}

/* Returns where the kind of the module @path is stored; FATHOM_KEY_NEW: not yet. */
static uint32_t *kind_at(struct page *p, struct side *side, const char *path)
{
	uint32_t *kind = fathom_key_map_at(&side->kinds, text(p, path));

	p->data.no_memory |= !kind;
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
		return FATHOM_PAGE_NO_CODE;
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

	if (match && kind == FATHOM_PROFILE_MODULE_WAITS) {
		fathom_reason_generalize(name, reason, sizeof reason);
		name = reason;
	}
	return fathom_page_function(
		&p->data, &(struct fathom_page_function){
				  .name = name,
				  .linkage_name = row->linkage_name,
				  .module = match ? match->name : row->module,
				  .module_key = match ? match->match + 1 : text(p, row->module),
				  .kind = kind });
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
	return fathom_page_child(&p->data.tree, parent, function_of(p, side, row));
}

/* Returns whether to go on. */
static bool keeps_on(struct page *p)
{
	if (!fathom_keeps_pace(&p->pace))
		p->is_cancelled = true;
	return !p->is_cancelled && !p->data.no_memory && !p->data.tree.no_memory &&
	       !p->data.tree.is_too_large;
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

	p->data.no_memory |= !state;
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
		p->data.no_memory |= !fathom_array_push(&side->walked, node);
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

/* Returns the number of the place with @key, at @file and @line, of which NULL and 0: none. */
static uint32_t place_at(struct page *p, uint64_t key, const char *file, uint32_t line,
			 uint32_t spot)
{
	uint32_t *number = fathom_key_map_at(&p->by_place, key);

	if (!number) {
		p->data.no_memory = true;
		return 0;
	}
	if (*number == FATHOM_KEY_NEW) {
		*number = (uint32_t)p->data.columns[FATHOM_PAGE_PLACE_FILE].n;
		fathom_page_put(&p->data.columns[FATHOM_PAGE_PLACE_FILE], text(p, file));
		fathom_page_put(&p->data.columns[FATHOM_PAGE_PLACE_LINE], line);
		fathom_page_put(&p->data.columns[FATHOM_PAGE_PLACE_SPOT], spot);
	}
	return *number;
}

/*
 * Returns the number of the source line and instruction that samples of @node count for: those of
 * its innermost frame that is shown. It is 0 if neither is known.
 */
static uint32_t place_of(struct page *p, struct side *side, uint32_t node)
{
	const struct fathom_profile_node *nodes = side->profile->nodes;
	const struct fathom_report_frame *frames;
	const struct fathom_frame *f;
	const char *file;
	uint32_t n, k, spot;

	for (;; node = nodes[node].caller) {
		if (!node)
			return 0;
		frames = fathom_report_chain(&side->rows, nodes[node].location, &n);
		f = side->profile->locations[nodes[node].location].answer->frame;
		for (k = 0; k < n && !(frames[k].chosen & FATHOM_REPORT_WANTED); k++)
			f = f ? f->outer : NULL;
		if (k < n)
			break;
	}
	spot = side->source.by_location ? side->source.by_location[nodes[node].location] : 0;
	file = f && f->line ? f->file : NULL;
	if (!file && !spot)
		return 0;
	return place_at(p, spot ? SPOT_KEY | spot : (uint64_t)text(p, file) << 32 | f->line, file,
			file ? f->line : 0, spot);
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
	p->data.tree.items[state].weights[!is_first(p, leaf.part)] += s->weight;
	one.node = state;
	one.part = leaf.part;
	one.thread = side->first_thread + s->thread;
	fathom_page_samples_add(&p->data.samples, &one);
	return p->data.samples.no_memory || p->data.samples.is_too_large;
}

static void put_threads(struct page *p, const struct side *side)
{
	for (size_t i = 0; i < side->profile->n_threads; i++) {
		const struct fathom_profile_thread *t = &side->profile->threads[i];

		fathom_page_thread(&p->data, (size_t)(side - p->sides), t->pid, t->tid, t->name,
				   t->process);
	}
}

/* Writes the modules that name nothing, and why. */
static void put_nameless(struct page *p, size_t side)
{
	const struct fathom_profile *profile = p->sides[side].profile;
	uint8_t *reasons = calloc(profile->n_modules + 1, 1);
	unsigned told = 0;

	if (!reasons) {
		p->data.no_memory = true;
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
		fathom_page_fact(&p->data, side, "nameless", "%s (%s)", profile->modules[i].path,
				 fathom_reason_name((enum fathom_reason)reasons[i]));
	}
	if (told > NAMELESS_TOLD)
		fathom_page_fact(&p->data, side, "nameless", "and %u others", told - NAMELESS_TOLD);
	free(reasons);
}

static void put_facts(struct page *p, size_t side)
{
	const struct fathom_profile_info *info = &p->sides[side].profile->info;

	fathom_page_fact(&p->data, side, "command", "%s", info->command);
	fathom_page_fact(&p->data, side, "event", "%s", info->event);
	fathom_page_fact(&p->data, side, "unit", "%s", info->unit);
	fathom_page_fact(&p->data, side, "method", "%s", info->method);
	fathom_page_fact(&p->data, side, "machine", "%s", info->machine);
	fathom_page_fact(&p->data, side, "kernel", "%s", info->kernel);
	fathom_page_fact(&p->data, side, "host", "%s", info->host);
	fathom_page_fact(&p->data, side, "frequency", "%" PRIu32, info->frequency);
	fathom_page_fact(&p->data, side, "complete", "%u", info->is_complete);
	fathom_page_fact(&p->data, side, "kernel-hidden", "%u", info->is_kernel_hidden);
	fathom_page_fact(&p->data, side, "started", "%" PRIu64, info->started);
	fathom_page_fact(&p->data, side, "duration", "%" PRIu64, info->duration_ns);
	fathom_page_fact(&p->data, side, "weight", "%" PRIu64, info->weight);
	fathom_page_fact(&p->data, side, "samples", "%" PRIu64, info->n_samples);
	fathom_page_fact(&p->data, side, "stacks", "%" PRIu64, info->n_stacks);
	if (!info->has_unknown_ends)
		fathom_page_fact(&p->data, side, "whole", "%" PRIu64, info->n_whole);
	fathom_page_fact(&p->data, side, "lost", "%" PRIu64, info->lost);
	fathom_page_fact(&p->data, side, "throttled", "%" PRIu64, info->throttled);
	fathom_page_fact(&p->data, side, "waiting", "%" PRIu64, info->waiting_ns);
	fathom_page_fact(&p->data, side, "runnable", "%" PRIu64, info->runnable_ns);
	fathom_page_fact(&p->data, side, "waits", "%" PRIu64, info->n_waits);
	put_nameless(p, side);
}

/* Writes what the options leave out. */
static void put_filters(struct page *p)
{
	const struct fathom_report_options *o = p->options;

	for (size_t i = 0; i < o->n_only; i++)
		fathom_page_fact(&p->data, 0, "filter", "only %s", o->only[i]);
	for (size_t i = 0; i < o->n_except; i++)
		fathom_page_fact(&p->data, 0, "filter", "not %s", o->except[i]);
	for (size_t i = 0; i < o->n_under; i++)
		fathom_page_fact(&p->data, 0, "filter", "under %s", o->under[i]);
	if (o->from_ns)
		fathom_page_fact(&p->data, 0, "filter", "from %" PRIu64 ".%09" PRIu64 " s",
				 o->from_ns / 1000000000, o->from_ns % 1000000000);
	if (o->to_ns)
		fathom_page_fact(&p->data, 0, "filter", "to %" PRIu64 ".%09" PRIu64 " s",
				 o->to_ns / 1000000000, o->to_ns % 1000000000);
	fathom_page_fact(&p->data, 0, "time", "%" PRIu32, o->time);
	if (p->data.samples.slice)
		fathom_page_fact(&p->data, 0, "slice", "%" PRIu64, p->data.samples.slice);
}

/* Takes source and instructions of the functions that weigh most into the page. */
static fathom_err read_source(struct page *p, struct side *side, struct fathom_errinfo *reterr)
{
	struct fathom_page_source *s = &side->source;
	const size_t number = (size_t)(side - p->sides);

	FATHOM_TRY(fathom_page_source_init(s, side->profile, p->options, &p->n_spots, reterr));
	for (size_t i = 0; i < s->n; i++) {
		const struct fathom_report_row row = { .name = s->functions[i].name,
						       .linkage_name = s->functions[i].linkage_name,
						       .module = s->functions[i].module };

		fathom_page_source_put(s, i, add_function(p, side, &row), number, &p->data);
	}
	fathom_page_source_fact(s, number, &p->data);
	return FATHOM_OK;
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
	FATHOM_TRY(read_source(p, side, reterr));
	(void)fathom_goes_on(side->profile->session, FATHOM_PHASE_READ, 0, 0);
	return fathom_profile_each_sample(side->profile, add_sample, &a, reterr);
}

/* Returns the error of what was collected. */
static fathom_err check(const struct page *p, struct fathom_errinfo *reterr)
{
	return p->is_cancelled ? fathom_fail(reterr, FATHOM_E_CANCELLED, "", 0,
					     "the caller has given it up")
			       : fathom_page_data_check(&p->data, reterr);
}

/* Makes all columns. */
static fathom_err collect(struct page *p, struct fathom_errinfo *reterr)
{
	fathom_page_tree_init(&p->data.tree);
	(void)text(p, "");
	/* Place 0 is none. */
	for (unsigned i = FATHOM_PAGE_PLACE_FILE; i <= FATHOM_PAGE_PLACE_SPOT; i++)
		fathom_page_put(&p->data.columns[i], 0);
	fathom_page_fact(&p->data, 0, "kind", "%s", p->n_sides > 1 ? "diff" : "profile");
	for (size_t i = 0; i < p->n_sides; i++) {
		put_facts(p, i);
		if (p->sides[i].has_rows)
			FATHOM_TRY(read_side(p, &p->sides[i], reterr));
		FATHOM_TRY(check(p, reterr));
	}
	put_filters(p);
	fathom_page_data_end(&p->data);
	return check(p, reterr);
}

static void deinit(struct page *p)
{
	for (size_t i = 0; i < p->n_sides; i++) {
		fathom_report_rows_deinit(&p->sides[i].rows);
		fathom_key_map_deinit(&p->sides[i].kinds);
		fathom_key_map_deinit(&p->sides[i].states);
		fathom_array_free(&p->sides[i].walked);
		fathom_page_source_deinit(&p->sides[i].source);
		free(p->sides[i].functions);
	}
	if (p->n_sides > 1)
		fathom_compared_modules_deinit(&p->modules);
	fathom_page_data_deinit(&p->data);
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
	p->data.tree.memory = p->data.samples.memory = &profile->session->memory;
	if (profile->info.duration_ns > p->data.samples.duration)
		p->data.samples.duration = profile->info.duration_ns;
	err = fathom_report_rows_init(&side->rows, reterr);
	side->has_rows = !err;
	return err;
}

fathom_err fathom_export_page(const struct fathom_export *e, struct fathom_errinfo *reterr)
{
	const struct fathom_profile *const profiles[2] = { e->profile, e->other };
	struct page p = { .options = e->options,
			  .data.samples = { .most = FATHOM_PAGE_SAMPLES },
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
		err = collect(&p, reterr);
	if (!err)
		err = fathom_page_data_write(&p.data, e->write, e->data, reterr);
	deinit(&p);
	return err;
}
