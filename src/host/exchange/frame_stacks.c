/* SPDX-License-Identifier: MIT */
#include "host/exchange/frame_stacks.h"

#include <string.h>

#include "fathom/stack.h"
#include "host/base/path.h"
#include "safe/base/error.h"

/* Frames before the caller is asked whether to go on. */
#define PACE (1 << 16)

/* A stack that has not reached what it has to begin with. */
#define OUTSIDE (UINT32_MAX - 1)
/* Bytes that a stack takes, with how it is found. */
#define STACK_SIZE 96
/* Stacks before their size is compared with the budget. */
#define UNCHECKED 4096

/* Checks the budget each time that the number of stacks has doubled. */
static void check_budget(struct fathom_frame_stacks *s)
{
	const size_t n = s->n + s->known.n;

	if (n < UNCHECKED || n < s->checked)
		return;
	s->checked = 2 * n;
	if (!fathom_memory_fits(&s->rows->profile->session->memory, s->checked * STACK_SIZE))
		s->is_too_much = true;
}

static uint32_t add(struct fathom_frame_stacks *s, uint32_t caller, uint32_t frame)
{
	if (!s->n && !fathom_array_push(s, (struct fathom_frame_stack){ 0, 0 }))
		s->no_memory = true;
	if (s->n >= OUTSIDE)
		s->is_too_much = true;
	if (fathom_frame_stacks_failed(s) ||
	    !fathom_array_push(s, (struct fathom_frame_stack){ caller, frame })) {
		s->no_memory |= !s->is_too_much;
		return FATHOM_KEY_NEW;
	}
	check_budget(s);
	return (uint32_t)s->n - 1;
}

/* Returns the stack of @frame called by @caller. */
static uint32_t child(struct fathom_frame_stacks *s, uint32_t caller, uint32_t frame)
{
	uint32_t *number;

	if (s->same)
		frame = s->same[frame];
	number = fathom_key_map_at(&s->children, (uint64_t)caller << 32 | frame);
	if (!number) {
		s->no_memory = true;
		return 0;
	}
	if (*number == FATHOM_KEY_NEW)
		*number = add(s, caller, frame);
	return *number == FATHOM_KEY_NEW ? 0 : *number;
}

static uint32_t own(struct fathom_frame_stacks *s, uint32_t caller, uint32_t row)
{
	return child(s, caller, (uint32_t)s->rows->frames.n + row);
}

/* Returns the stack of the frames of @node called by @state, which may be OUTSIDE. */
static uint32_t enter(struct fathom_frame_stacks *s, uint32_t state, uint32_t node)
{
	const uint32_t location = s->rows->profile->nodes[node].location;
	uint32_t n;
	const struct fathom_report_frame *frames = fathom_report_chain(s->rows, location, &n);

	while (n--) {
		if (state == OUTSIDE && frames[n].chosen & FATHOM_REPORT_UNDER)
			state = 0;
		if (state != OUTSIDE && frames[n].chosen & FATHOM_REPORT_WANTED)
			state = child(s, state, s->rows->chains[location] + n);
	}
	return state;
}

/* Returns where the stack of @node is stored, of stacks that end in @stop. */
static uint32_t *known_at(struct fathom_frame_stacks *s, uint32_t node, uint8_t stop)
{
	uint32_t *known = fathom_key_map_at(&s->known, (uint64_t)stop << 32 | node);

	s->no_memory |= !known;
	return known;
}

/* Returns the stack of @node; callers that are not known are made, the outermost first. */
static uint32_t stack_of_node(struct fathom_frame_stacks *s, uint32_t node, uint8_t stop,
			      uint32_t start)
{
	const struct fathom_profile_node *nodes = s->rows->profile->nodes;
	uint32_t state = start;
	uint32_t *known;

	s->walked.n = 0;
	for (; node && !fathom_frame_stacks_failed(s); node = nodes[node].caller) {
		known = known_at(s, node, stop);
		if (known && *known != FATHOM_KEY_NEW) {
			state = *known;
			break;
		}
		if (known)
			*known = 0;
		s->no_memory |= !fathom_array_push(&s->walked, node);
		s->is_cancelled |= !fathom_keeps_pace(&s->pace);
	}
	while (s->walked.n && !fathom_frame_stacks_failed(s)) {
		node = s->walked.items[--s->walked.n];
		state = enter(s, state, node);
		known = known_at(s, node, stop);
		if (known)
			*known = state;
		check_budget(s);
	}
	return state;
}

uint32_t fathom_frame_stacks_of(struct fathom_frame_stacks *s,
				const struct fathom_report_leaf *leaf)
{
	const struct fathom_report_rows *r = s->rows;
	const bool is_cut = leaf->stop != FATHOM_STOP_ENTRY && !r->has_under && r->has_own;
	const uint8_t stop = is_cut ? leaf->stop : FATHOM_STOP_ENTRY;
	uint32_t state = r->has_under ? OUTSIDE : 0;

	if (is_cut)
		state = own(s, 0, r->incomplete[stop]);
	state = stack_of_node(s, leaf->node, stop, state);
	if (state == OUTSIDE)
		return 0;
	if (leaf->part == FATHOM_PROFILE_UNSAMPLED && r->has_own)
		state = own(s, state, r->unsampled);
	else if (leaf->part == FATHOM_PROFILE_KERNEL_HIDDEN && r->has_own)
		state = own(s, state, r->hidden);
	return fathom_frame_stacks_failed(s) ? 0 : state;
}

void fathom_frame_stacks_deinit(struct fathom_frame_stacks *s)
{
	fathom_array_free(s);
	fathom_key_map_deinit(&s->children);
	fathom_key_map_deinit(&s->known);
	fathom_array_free(&s->walked);
}

fathom_err fathom_frame_stacks_end(const struct fathom_frame_stacks *s,
				   struct fathom_errinfo *reterr)
{
	if (s->is_cancelled)
		return fathom_fail(reterr, FATHOM_E_CANCELLED, "", 0, "the caller has given it up");
	if (s->no_memory)
		return fathom_fail_memory(reterr);
	return s->is_too_much ? fathom_fail_by(reterr, FATHOM_E_LIMIT, FATHOM_CAUSE_BUDGET,
					       "the stacks do not fit the memory budget")
			      : FATHOM_OK;
}

struct fathom_frame_facts fathom_frame_facts_of(const struct fathom_report_rows *r, uint32_t frame)
{
	struct fathom_frame_facts facts = { .row_number = frame - (uint32_t)r->frames.n };
	size_t location;
	uint32_t depth;

	if (frame >= r->frames.n) {
		facts.row = &r->items[facts.row_number];
		return facts;
	}
	location = FATHOM_BISECT(r->profile->n_locations, i, r->chains[i] <= frame) - 1;
	facts.row_number = r->frames.items[frame].row;
	facts.row = &r->items[facts.row_number];
	facts.location = &r->profile->locations[location];
	facts.debug = facts.location->answer->frame;
	depth = frame - r->chains[location];
	facts.inline_depth = r->chains[location + 1] - frame - 1;
	while (depth-- && facts.debug)
		facts.debug = facts.debug->outer;
	return facts;
}

bool fathom_frame_spell_text(struct fathom_bytes_array *to, const char *s)
{
	const size_t n = strlen(s);

	if (!fathom_array_room(to, n + 1))
		return false;
	memcpy(to->items + to->n, s, n + 1);
	to->n += n;
	return true;
}

bool fathom_frame_spell(struct fathom_bytes_array *to, const struct fathom_report_row *row)
{
	const char *module = fathom_path_last_part(row->module);

	if (row->kind == FATHOM_REPORT_ROW_CODE && !row->linkage_name &&
	    strcmp(row->name, "??") == 0)
		return fathom_frame_spell_text(to, "[") &&
		       fathom_frame_spell_text(to, module ? module : "unknown") &&
		       fathom_frame_spell_text(to, "]");
	return fathom_frame_spell_text(to, row->name);
}

fathom_err fathom_export_threads(const struct fathom_export *e, struct fathom_trace_writer *w,
				 struct fathom_report_rows *rows,
				 struct fathom_frame_stacks *stacks,
				 fathom_err (*write)(void *data, struct fathom_errinfo *reterr),
				 void *data, struct fathom_errinfo *reterr)
{
	struct fathom_report_options o = *e->options;
	fathom_err err;
	fathom_err end;

	o.key = FATHOM_REPORT_BY_THREAD;
	*w = fathom_export_writer(e);
	*rows = (struct fathom_report_rows){ .profile = e->profile, .options = &o };
	*stacks =
		(struct fathom_frame_stacks){ .rows = rows,
					      .pace = fathom_pace_init(e->profile->session, PACE) };
	err = fathom_report_rows_init(rows, reterr);
	if (!err)
		err = write(data, reterr);
	w->has_failed |= err != FATHOM_OK;
	end = fathom_export_end(w, err ? NULL : reterr);
	fathom_frame_stacks_deinit(stacks);
	fathom_report_rows_deinit(rows);
	return err ? err : end;
}
