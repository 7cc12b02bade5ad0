/* SPDX-License-Identifier: MIT */
/*
 * Weights of spots and lines. The nodes of the profile are a tree, so one walk over it finds each
 * stack: what is on the way counts once for all samples below, also if it is there twice.
 */
#include <stdlib.h>

#include "host/annotate/annotating.h"
#include "safe/base/error.h"

/* Steps before the caller is asked whether to go on, and before it is given up. */
#define PACE       (1 << 18)
#define MOST_STEPS (UINT64_C(1) << 32)
/* Bytes for each node. */
#define NODE_SIZE 32

struct fathom_annotate_weighing {
	struct fathom_annotating *a;
	const struct fathom_profile_node *nodes;
	size_t n_nodes;
	uint32_t *spots;     /* of each frame; NONE: it is of no function that is asked for */
	uint32_t *lines;     /* of each frame, likewise */
	uint64_t *weights;   /* of each node: of the samples whose stack has it */
	uint64_t *samples;   /* likewise */
	uint32_t *effective; /* of each node: where its samples are; 0: in nothing wanted */
	uint8_t *is_inside;  /* of each node: its stack has begun */
	uint32_t *first;     /* of each node: what it calls */
	uint32_t *next;      /* of each node: its sibling */
	uint32_t *open_functions;
	uint32_t *open_spots;
	uint32_t *open_lines;
	uint32_t *open_places; /* NULL: places are not weighed yet */
	uint32_t *stamps;      /* of each spot: the leaf that was added to it last */
	struct fathom_pace pace;
	uint64_t steps;
	bool is_cancelled;
};

static bool step(struct fathom_annotate_weighing *w)
{
	if (!fathom_keeps_pace(&w->pace))
		w->is_cancelled = true;
	return !w->is_cancelled && ++w->steps < MOST_STEPS;
}

uint32_t fathom_annotate_line_at(struct fathom_annotating *a, uint32_t function, const char *inner,
				 const struct fathom_annotate_origin *p)
{
	struct fathom_annotate_line line = { .function = function,
					     .inner = NONE,
					     .line = p->line,
					     .module = p->module,
					     .address = p->address };
	uint32_t *place;
	uint32_t *who;
	uint32_t *number;
	uint64_t key;

	if (!p->file || !p->line)
		return NONE;
	line.file = fathom_name_table_add(&a->names, p->file);
	if (inner)
		line.inner = fathom_name_table_add(&a->names, inner);
	if (line.file == FATHOM_KEY_NEW || (inner && line.inner == FATHOM_KEY_NEW))
		goto no_memory;
	place = fathom_key_map_at(&a->by_place, (uint64_t)line.file << 32 | p->line);
	who = fathom_key_map_at(&a->by_who, (uint64_t)function << 32 | line.inner);
	if (!place || !who)
		goto no_memory;
	if (*place == FATHOM_KEY_NEW)
		*place = (uint32_t)a->by_place.n;
	if (*who == FATHOM_KEY_NEW)
		*who = (uint32_t)a->by_who.n;
	key = (uint64_t)*place << 32 | *who;
	number = fathom_key_map_at(&a->by_line, key);
	if (!number)
		goto no_memory;
	if (*number != FATHOM_KEY_NEW)
		return *number;
	if (!fathom_array_push(&a->functions.items[function].lines, (uint32_t)a->lines.n) ||
	    !fathom_array_push(&a->lines, line))
		goto no_memory;
	*number = (uint32_t)a->lines.n - 1;
	return *number;
no_memory:
	a->no_memory = true;
	return NONE;
}

/* Returns the number of the function with @row. */
static uint32_t function_at(struct fathom_annotating *a, uint32_t row)
{
	const struct fathom_annotate_function f = { .row = row,
						    .rank = NONE,
						    .last_location = NONE };
	uint32_t *number = fathom_key_map_at(&a->by_row, row);

	if (number && *number == FATHOM_KEY_NEW && fathom_array_push(&a->functions, f))
		*number = (uint32_t)a->functions.n - 1;
	if (number && *number != FATHOM_KEY_NEW)
		return *number;
	a->no_memory = true;
	return NONE;
}

/* A location whose frames become spots. */
struct visited {
	uint32_t number;
	const struct fathom_profile_location *location;
	const struct fathom_frame *innermost; /* NULL: only the symbol is known */
};

static struct fathom_annotate_origin origin_of(const struct visited *v,
					       const struct fathom_frame *f)
{
	return (struct fathom_annotate_origin){ .file = f ? f->file : NULL,
						.line = f ? f->line : 0,
						.module = v->location->module,
						.address = fathom_pc_lookup(v->location->pc) };
}

/* Returns the spot of @function at @v; its own frame there is @f, unless it has one already. */
static uint32_t spot_at(struct fathom_annotating *a, uint32_t function, const struct visited *v,
			const struct fathom_frame *f)
{
	struct fathom_annotate_spot spot = { .function = function,
					     .location = v->number,
					     .place = NONE };
	struct fathom_annotate_origin origin = origin_of(v, f);

	if (a->functions.items[function].last_location == v->number) {
		const uint32_t known = a->functions.items[function].last_spot;

		/* It is inlined into itself. */
		a->spots.items[known].is_inlined &= f && f->outer;
		return known;
	}
	spot.line = fathom_annotate_line_at(a, function, NULL, &origin);
	origin = origin_of(v, v->innermost);
	spot.inner =
		f == v->innermost
			? NONE
			: fathom_annotate_line_at(
				  a, function,
				  v->innermost->function ? v->innermost->function : "??", &origin);
	spot.is_inlined = f && f->outer;
	a->no_memory |= !fathom_array_push(&a->spots, spot);
	a->functions.items[function].last_location = v->number;
	a->functions.items[function].last_spot = (uint32_t)a->spots.n - 1;
	return (uint32_t)a->spots.n - 1;
}

/* Gives the frames of location @i their spots and lines. */
static void visit_location(struct fathom_annotate_weighing *w, uint32_t i)
{
	struct fathom_annotating *a = w->a;
	const uint32_t asked = FATHOM_REPORT_WANTED | (a->rows.options->of ? FATHOM_REPORT_OF : 0);
	const struct visited v = { .number = i,
				   .location = &a->profile->locations[i],
				   .innermost = a->profile->locations[i].answer->frame };
	const struct fathom_frame *f = v.innermost;

	for (uint32_t k = a->rows.chains[i]; k < a->rows.chains[i + 1] && !a->no_memory; k++) {
		const struct fathom_report_frame *frame = &a->rows.frames.items[k];

		w->spots[k] = w->lines[k] = NONE;
		if ((frame->chosen & asked) == asked) {
			const struct fathom_annotate_origin origin = origin_of(&v, f);
			const uint32_t function = function_at(a, frame->row);

			if (function == NONE)
				return;
			w->spots[k] = spot_at(a, function, &v, f);
			w->lines[k] = fathom_annotate_line_at(a, function, NULL, &origin);
		}
		a->has_lines |= f && f->file;
		f = f ? f->outer : NULL;
	}
}

/* Returns how many of the frames of @node, from the innermost on, are in stacks that have begun. */
static uint32_t count_inside(const struct fathom_annotate_weighing *w, uint32_t node,
			     const struct fathom_report_frame *frames, uint32_t n)
{
	if (!w->a->rows.has_under || w->is_inside[w->nodes[node].caller])
		return n;
	while (n && !(frames[n - 1].chosen & FATHOM_REPORT_UNDER))
		n--;
	return n;
}

/* Finds where samples of each node are, and links the nodes. */
static void prepare_nodes(struct fathom_annotate_weighing *w)
{
	for (uint32_t i = 1; i < w->n_nodes && step(w); i++) {
		uint32_t n;
		const struct fathom_report_frame *frames =
			fathom_report_chain(&w->a->rows, w->nodes[i].location, &n);
		const uint32_t inside = count_inside(w, i, frames, n);

		w->is_inside[i] = !w->a->rows.has_under || inside;
		w->effective[i] = w->effective[w->nodes[i].caller];
		for (uint32_t k = 0; k < inside && step(w); k++)
			if (frames[k].chosen & FATHOM_REPORT_WANTED) {
				w->effective[i] = i;
				break;
			}
	}
	for (uint32_t i = (uint32_t)w->n_nodes; i-- > 1;) {
		w->next[i] = w->first[w->nodes[i].caller];
		w->first[w->nodes[i].caller] = i;
	}
}

static void add_self(struct fathom_annotated_weight *to, const struct fathom_report_leaf *l)
{
	to->self += l->weight;
	to->self_samples += l->n;
}

static void add_inlined(struct fathom_annotated_weight *to, const struct fathom_report_leaf *l)
{
	to->inlined += l->weight;
	to->inlined_samples += l->n;
}

/* Adds leaf @l, with number @stamp, to frame @k, which it is in. */
static void add_at(struct fathom_annotate_weighing *w, const struct fathom_report_leaf *l,
		   uint32_t stamp, uint32_t k)
{
	struct fathom_annotating *a = w->a;
	struct fathom_annotate_spot *spot;
	struct fathom_annotate_function *f;

	if (w->spots[k] == NONE)
		return;
	spot = &a->spots.items[w->spots[k]];
	f = &a->functions.items[spot->function];
	w->stamps[w->spots[k]] = stamp;
	add_self(&spot->weight, l);
	add_self(&f->weight, l);
	add_self(w->lines[k] == NONE ? &f->no_line : &a->lines.items[w->lines[k]].weight, l);
}

/* Adds the same to frame @k, into which its function is inlined. */
static void add_around(struct fathom_annotate_weighing *w, const struct fathom_report_leaf *l,
		       uint32_t stamp, uint32_t k)
{
	struct fathom_annotating *a = w->a;
	struct fathom_annotate_spot *spot;
	struct fathom_annotate_function *f;

	if (w->spots[k] == NONE || w->stamps[w->spots[k]] == stamp)
		return;
	spot = &a->spots.items[w->spots[k]];
	f = &a->functions.items[spot->function];
	w->stamps[w->spots[k]] = stamp;
	add_inlined(&spot->weight, l);
	add_inlined(&f->weight, l);
	add_inlined(w->lines[k] == NONE ? &f->no_line : &a->lines.items[w->lines[k]].weight, l);
	if (spot->inner != NONE)
		add_inlined(&a->lines.items[spot->inner].weight, l);
}

/* Adds leaf @l where its samples are. Samples in the kernel, unseen, are in none of its callers. */
static void add_leaf(struct fathom_annotate_weighing *w, const struct fathom_report_leaf *l,
		     uint32_t stamp)
{
	const struct fathom_report_rows *r = &w->a->rows;
	const uint32_t node = w->effective[l->node];
	const struct fathom_report_frame *frames;
	uint32_t n;
	uint32_t k = 0;

	w->weights[l->node] += l->weight;
	w->samples[l->node] += l->n;
	if (!node || (l->part == FATHOM_PROFILE_KERNEL_HIDDEN && r->has_own))
		return;
	frames = fathom_report_chain(r, w->nodes[node].location, &n);
	n = count_inside(w, node, frames, n);
	while (k < n && !(frames[k].chosen & FATHOM_REPORT_WANTED))
		k++;
	if (k >= n)
		return;
	add_at(w, l, stamp, (uint32_t)(frames - r->frames.items) + k);
	for (k++; k < n && step(w); k++)
		add_around(w, l, stamp, (uint32_t)(frames - r->frames.items) + k);
}

/* Adds the weight of @node to @to, unless that is @open, on the way to it, already. */
static void open_total(const struct fathom_annotate_weighing *w, uint32_t node, uint32_t *open,
		       struct fathom_annotated_weight *to)
{
	if ((*open)++)
		return;
	to->total += w->weights[node];
	to->total_samples += w->samples[node];
}

/* Enters or leaves the place of @spot. */
static void pass_place(struct fathom_annotate_weighing *w, uint32_t node, uint32_t spot,
		       bool enters)
{
	const uint32_t place = w->a->spots.items[spot].place;

	if (place == NONE)
		return;
	if (enters)
		open_total(w, node, &w->open_places[place], &w->a->places.items[place].weight);
	else
		w->open_places[place]--;
}

/* Enters or leaves the function, spot and line of a frame. */
static void pass_frame(struct fathom_annotate_weighing *w, uint32_t node, uint32_t spot,
		       uint32_t line, bool enters)
{
	struct fathom_annotating *a = w->a;
	const uint32_t function = a->spots.items[spot].function;

	if (!enters) {
		w->open_spots[spot]--;
		w->open_functions[function]--;
		if (line != NONE)
			w->open_lines[line]--;
		return;
	}
	open_total(w, node, &w->open_spots[spot], &a->spots.items[spot].weight);
	open_total(w, node, &w->open_functions[function], &a->functions.items[function].weight);
	if (line != NONE)
		open_total(w, node, &w->open_lines[line], &a->lines.items[line].weight);
}

/* Enters or leaves @node. */
static void pass_node(struct fathom_annotate_weighing *w, uint32_t node, bool enters)
{
	const struct fathom_report_rows *r = &w->a->rows;
	uint32_t n;
	const struct fathom_report_frame *frames =
		fathom_report_chain(r, w->nodes[node].location, &n);
	const size_t first = (size_t)(frames - r->frames.items);

	n = count_inside(w, node, frames, n);
	for (size_t k = first; k < first + n && step(w); k++) {
		if (w->spots[k] == NONE)
			continue;
		if (w->open_places)
			pass_place(w, node, w->spots[k], enters);
		else
			pass_frame(w, node, w->spots[k], w->lines[k], enters);
	}
}

/* Walks over all stacks. */
static void add_totals(struct fathom_annotate_weighing *w)
{
	uint32_t i = w->first[0];

	while (i && step(w)) {
		if (w->samples[i]) {
			pass_node(w, i, true);
			if (w->first[i]) {
				i = w->first[i];
				continue;
			}
		}
		for (; i; i = w->nodes[i].caller) {
			if (w->samples[i])
				pass_node(w, i, false);
			if (w->next[i]) {
				i = w->next[i];
				break;
			}
		}
	}
}

static bool alloc_nodes(struct fathom_annotate_weighing *w)
{
	w->weights = calloc(w->n_nodes, sizeof *w->weights);
	w->samples = calloc(w->n_nodes, sizeof *w->samples);
	w->effective = calloc(w->n_nodes, sizeof *w->effective);
	w->is_inside = calloc(w->n_nodes, sizeof *w->is_inside);
	w->first = calloc(w->n_nodes, sizeof *w->first);
	w->next = calloc(w->n_nodes, sizeof *w->next);
	return w->weights && w->samples && w->effective && w->is_inside && w->first && w->next;
}

static bool alloc_marks(struct fathom_annotate_weighing *w)
{
	const struct fathom_annotating *a = w->a;

	w->open_functions = calloc(a->functions.n + 1, sizeof *w->open_functions);
	w->open_spots = calloc(a->spots.n + 1, sizeof *w->open_spots);
	w->open_lines = calloc(a->lines.n + 1, sizeof *w->open_lines);
	w->stamps = calloc(a->spots.n + 1, sizeof *w->stamps);
	return w->open_functions && w->open_spots && w->open_lines && w->stamps;
}

static bool weigh(struct fathom_annotate_weighing *w)
{
	struct fathom_annotating *a = w->a;
	const size_t n_frames = a->rows.frames.n;

	w->spots = malloc((n_frames + 1) * sizeof *w->spots);
	w->lines = malloc((n_frames + 1) * sizeof *w->lines);
	if (!w->spots || !w->lines || !alloc_nodes(w))
		return false;
	for (uint32_t i = 0; i < a->profile->n_locations && !a->no_memory && step(w); i++)
		visit_location(w, i);
	if (a->no_memory || !alloc_marks(w))
		return false;
	prepare_nodes(w);
	for (size_t i = 0; i < a->leaves.n && step(w); i++)
		add_leaf(w, &a->leaves.items[i], (uint32_t)i + 1);
	for (uint32_t i = (uint32_t)w->n_nodes; i-- > 1;) {
		w->weights[w->nodes[i].caller] += w->weights[i];
		w->samples[w->nodes[i].caller] += w->samples[i];
	}
	add_totals(w);
	return true;
}

void fathom_annotate_weighing_free(struct fathom_annotate_weighing *w)
{
	if (!w)
		return;
	free(w->spots);
	free(w->lines);
	free(w->weights);
	free(w->samples);
	free(w->effective);
	free(w->is_inside);
	free(w->first);
	free(w->next);
	free(w->open_functions);
	free(w->open_spots);
	free(w->open_lines);
	free(w->open_places);
	free(w->stamps);
	free(w);
}

/* Returns why @w is not done; @done: it had memory. */
static fathom_err end(const struct fathom_annotate_weighing *w, bool done,
		      struct fathom_errinfo *reterr)
{
	if (w->is_cancelled)
		return fathom_fail(reterr, FATHOM_E_CANCELLED, "", 0, "the caller has given it up");
	if (w->steps >= MOST_STEPS)
		return fathom_fail(reterr, FATHOM_E_LIMIT, "", 0,
				   "the stacks are too many and too deep");
	return done && !w->a->no_memory ? FATHOM_OK : fathom_fail_memory(reterr);
}

fathom_err fathom_annotate_weigh(struct fathom_annotating *a, struct fathom_errinfo *reterr)
{
	struct fathom_annotate_weighing *w = a->weighing = calloc(1, sizeof *w);

	if (!w)
		return fathom_fail_memory(reterr);
	w->a = a;
	w->nodes = a->profile->nodes;
	w->n_nodes = a->profile->n_nodes;
	w->pace = fathom_pace_init(a->profile->session, PACE);
	if (!fathom_memory_fits(&a->profile->session->memory, w->n_nodes * NODE_SIZE))
		return fathom_fail_by(reterr, FATHOM_E_LIMIT, FATHOM_CAUSE_BUDGET,
				      "the stacks do not fit the memory budget");
	return end(w, weigh(w), reterr);
}

fathom_err fathom_annotate_weigh_places(struct fathom_annotating *a, struct fathom_errinfo *reterr)
{
	struct fathom_annotate_weighing *w = a->weighing;

	w->open_places = calloc(a->places.n + 1, sizeof *w->open_places);
	if (!w->open_places)
		return fathom_fail_memory(reterr);
	add_totals(w);
	for (size_t i = 0; i < a->places.n; i++) {
		const struct fathom_annotate_place *p = &a->places.items[i];
		struct fathom_annotated_weight *to =
			&a->functions.items[p->function].instructions.items[p->instruction].weight;

		to->total = p->weight.total;
		to->total_samples = p->weight.total_samples;
	}
	return end(w, true, reterr);
}
