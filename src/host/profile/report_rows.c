/* SPDX-License-Identifier: MIT */
#include "host/profile/report_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fathom/stack.h"
#include "host/events/event_filter.h"
#include "safe/base/error.h"

uint32_t fathom_report_number_text(struct fathom_report_rows *r, const char *s)
{
	uint32_t *number;

	if (!s || !*s)
		return 0;
	number = fathom_key_map_at(&r->by_pointer, (uintptr_t)s);
	if (number && *number == FATHOM_KEY_NEW)
		*number = fathom_name_table_add(&r->texts, s);
	if (!number || *number == FATHOM_KEY_NEW) {
		r->no_memory = true;
		return 0;
	}
	return *number + 1;
}

/* Returns the copy of the text with @number, of fathom_report_number_text(); NULL for 0. */
static const char *text_of(const struct fathom_report_rows *r, uint32_t number)
{
	return number ? r->texts.items[number - 1].text : NULL;
}

const char *fathom_report_keep_text(struct fathom_report_rows *r, const char *s)
{
	return text_of(r, fathom_report_number_text(r, s));
}

uint32_t fathom_report_add_row(struct fathom_report_rows *r, const struct fathom_report_row *row)
{
	if (r->n >= FATHOM_KEY_NEW - 1 || !fathom_array_push(r, *row)) {
		r->no_memory = true;
		return 0;
	}
	return (uint32_t)r->n - 1;
}

uint32_t *fathom_report_number_at(struct fathom_report_rows *r, struct fathom_key_map *map,
				  uint64_t key, uint32_t *spare)
{
	uint32_t *number = fathom_key_map_at(map, key);

	if (number)
		return number;
	r->no_memory = true;
	*spare = 0;
	return spare;
}

static uint64_t pair(uint32_t upper, uint32_t lower)
{
	return (uint64_t)upper << 32 | lower;
}

/* Returns for what a function was chosen, of its names the linked one. */
static uint32_t choose(struct fathom_report_rows *r, const char *linked, const char *module)
{
	uint8_t selection;
	uint32_t chosen = 0;

	if (!r->has_choice)
		return FATHOM_REPORT_WANTED;
	if (fathom_named_choices_want(&r->named, linked, module ? module : "", &selection))
		chosen |= FATHOM_REPORT_WANTED;
	if (selection & FATHOM_SELECT_UNDER)
		chosen |= FATHOM_REPORT_UNDER;
	if (selection & FATHOM_TRACE_AT_START)
		chosen |= FATHOM_REPORT_OF;
	r->matched |= chosen;
	return chosen;
}

/* A frame that is to have a row. */
struct place {
	const char *name;
	const char *linked; /* NULL: name is all that is known */
	const char *module; /* NULL: none */
	const char *file;   /* NULL: not known */
	uint32_t line;
};

/* Returns the number of the function at @p. */
static uint32_t function_at(struct fathom_report_rows *r, const struct place *p)
{
	const char *linked = p->linked ? p->linked : p->name;
	const uint64_t key =
		pair(fathom_report_number_text(r, linked), fathom_report_number_text(r, p->module));
	uint32_t spare;
	uint32_t *number = fathom_report_number_at(r, &r->by_name, key, &spare);
	struct fathom_report_function f = { .row = FATHOM_KEY_NEW };

	if (*number != FATHOM_KEY_NEW)
		return *number;
	f.chosen = choose(r, linked, p->module);
	r->no_memory |= !fathom_array_push(&r->functions, f);
	*number = r->no_memory ? 0 : (uint32_t)r->functions.n - 1;
	return *number;
}

/* Adds a row of the function at @p; with its line if @has_line. */
static uint32_t add_code(struct fathom_report_rows *r, const struct place *p, bool has_line)
{
	const char *name = fathom_report_keep_text(r, p->name);
	const struct fathom_report_row row = {
		.name = name ? name : fathom_report_keep_text(r, "??"),
		.linkage_name = fathom_report_keep_text(r, p->linked),
		.module = fathom_report_keep_text(r, p->module),
		.file = has_line ? fathom_report_keep_text(r, p->file) : NULL,
		.line = has_line ? p->line : 0
	};

	return fathom_report_add_row(r, &row);
}

static uint32_t row_of_line(struct fathom_report_rows *r, const struct place *p, uint32_t function)
{
	uint32_t spare;
	uint32_t *place = fathom_report_number_at(
		r, &r->by_file, pair(fathom_report_number_text(r, p->file), p->line), &spare);
	uint32_t *row;

	if (*place == FATHOM_KEY_NEW)
		*place = (uint32_t)r->by_file.n;
	row = fathom_report_number_at(r, &r->by_place, pair(function, *place), &spare);
	if (*row == FATHOM_KEY_NEW)
		*row = add_code(r, p, true);
	return *row;
}

static uint32_t row_of_module(struct fathom_report_rows *r, const char *module)
{
	uint32_t spare;
	uint32_t *row = fathom_report_number_at(r, &r->by_module,
						fathom_report_number_text(r, module), &spare);
	const char *path = fathom_report_keep_text(r, module);

	if (*row == FATHOM_KEY_NEW)
		*row = fathom_report_add_row(
			r, &(struct fathom_report_row){
				   .name = path ? path : fathom_report_keep_text(r, "??"),
				   .module = path });
	return *row;
}

static uint32_t row_of_function(struct fathom_report_rows *r, const struct place *p,
				uint32_t function)
{
	struct fathom_report_function *f = &r->functions.items[function];

	if (f->row == FATHOM_KEY_NEW)
		f->row = add_code(r, p, false);
	return f->row;
}

static void add_frame(struct fathom_report_rows *r, const struct place *p)
{
	const uint32_t function = function_at(r, p);
	struct fathom_report_frame frame;

	if (r->no_memory)
		return;
	frame.chosen = r->functions.items[function].chosen;
	switch (r->options->key) {
	case FATHOM_REPORT_BY_LINE:
		frame.row = row_of_line(r, p, function);
		break;
	case FATHOM_REPORT_BY_MODULE:
		frame.row = row_of_module(r, p->module);
		break;
	default:
		frame.row = row_of_function(r, p, function);
	}
	r->no_memory |= !fathom_array_push(&r->frames, frame);
}

/* Adds the frames of a location. */
static void add_location(struct fathom_report_rows *r, const struct fathom_profile_location *l)
{
	const struct fathom_answer *a = l->answer;
	struct place p = { .name = a->symbol ? a->symbol : "??",
			   .linked = a->symbol ? a->linkage_name : NULL,
			   .module = l->module == UINT32_MAX
					     ? NULL
					     : r->profile->modules[l->module].path };

	if (!a->frame)
		add_frame(r, &p);
	for (const struct fathom_frame *f = a->frame; f; f = f->outer) {
		/* The outermost frame is the function that the symbol names. */
		if (f->outer || !a->symbol) {
			p.name = f->function ? f->function : "??";
			p.linked = f->function ? f->linkage_name : NULL;
		} else {
			p.name = a->symbol;
			p.linked = a->linkage_name;
		}
		p.file = f->file;
		p.line = f->line;
		add_frame(r, &p);
	}
}

static bool add_locations(struct fathom_report_rows *r)
{
	const struct fathom_profile *p = r->profile;

	r->chains = malloc((p->n_locations + 1) * sizeof *r->chains);
	if (!r->chains)
		return false;
	for (size_t i = 0; i < p->n_locations && !r->no_memory; i++) {
		r->chains[i] = (uint32_t)r->frames.n;
		add_location(r, &p->locations[i]);
		if (r->frames.n >= UINT32_MAX)
			return false;
	}
	r->chains[p->n_locations] = (uint32_t)r->frames.n;
	return !r->no_memory;
}

/* Adds the rows of what has no place. */
static bool add_own(struct fathom_report_rows *r)
{
	struct fathom_report_row row = { .name = fathom_report_keep_text(
						 r, "[kernel, stack not permitted]"),
					 .kind = FATHOM_REPORT_ROW_KERNEL_HIDDEN };

	r->hidden = fathom_report_add_row(r, &row);
	row = (struct fathom_report_row){ .name = fathom_report_keep_text(r, "[not sampled]"),
					  .kind = FATHOM_REPORT_ROW_UNSAMPLED };
	r->unsampled = fathom_report_add_row(r, &row);
	for (unsigned i = 0; i < FATHOM_REPORT_STOPS; i++) {
		const char *word = fathom_stop_name((enum fathom_stop)i);
		char text[64];
		uint32_t number;

		(void)snprintf(text, sizeof text,
			       *word ? "[stack not complete: %s]" : "[stack not complete%s]", word);
		/* Not by its pointer, which others have, too. */
		number = fathom_name_table_add(&r->texts, text);
		if (number == FATHOM_KEY_NEW)
			return false;
		row = (struct fathom_report_row){ .name = r->texts.items[number].text,
						  .kind = FATHOM_REPORT_ROW_INCOMPLETE,
						  .stop = (uint8_t)i };
		r->incomplete[i] = fathom_report_add_row(r, &row);
	}
	return !r->no_memory;
}

/* Reads the queries. */
static fathom_err init_choices(struct fathom_report_rows *r, struct fathom_errinfo *reterr)
{
	const struct fathom_report_options *o = r->options;
	const struct fathom_trace_at of = { .query = o->of, .actions = FATHOM_TRACE_AT_START };
	const struct fathom_trace_options chosen = { .size = sizeof chosen,
						     .only = o->only,
						     .n_only = o->n_only,
						     .except = o->except,
						     .n_except = o->n_except,
						     .under = o->under,
						     .n_under = o->n_under,
						     .at = &of,
						     .n_at = o->of != NULL };

	r->has_only = o->n_only != 0;
	r->has_own = !r->has_only;
	r->has_under = o->n_under != 0;
	r->has_choice = o->n_only || o->n_except || o->n_under || o->of;
	if (!fathom_choices_init(&r->choices, &chosen))
		return fathom_fail_memory(reterr);
	FATHOM_TRY(fathom_named_choices_init(&r->named, &r->choices, false, reterr));
	for (size_t i = 0; i < FATHOM_CHOICES; i++)
		for (size_t k = 0; k < r->choices.queries[i].n; k++)
			if (r->named.queries[i][k].kind == FATHOM_QUERY_LINE)
				return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
						   "functions of a profile are chosen by name, not "
						   "by file or line");
	return FATHOM_OK;
}

/* Fails if no function is one of those that were asked for. */
static fathom_err check_choices(const struct fathom_report_rows *r, struct fathom_errinfo *reterr)
{
	const struct {
		bool is_asked;
		uint32_t chosen;
		const char *why;
	} checks[] = {
		{ r->has_only, FATHOM_REPORT_WANTED, "no function of it is chosen by \"only\"" },
		{ r->has_under, FATHOM_REPORT_UNDER, "no function of it is chosen by \"under\"" },
		{ r->options->of, FATHOM_REPORT_OF, "it has no function of that name" },
	};

	for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
		if (checks[i].is_asked && !(r->matched & checks[i].chosen))
			return fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", 0, checks[i].why);
	return FATHOM_OK;
}

fathom_err fathom_report_rows_init(struct fathom_report_rows *r, struct fathom_errinfo *reterr)
{
	FATHOM_TRY(init_choices(r, reterr));
	if (!add_own(r) || !add_locations(r) || !fathom_report_add_groups(r))
		return fathom_fail_memory(reterr);
	return check_choices(r, reterr);
}

void fathom_report_rows_trim(struct fathom_report_rows *r)
{
	fathom_key_map_deinit(&r->by_pointer);
	fathom_key_map_deinit(&r->by_name);
	fathom_key_map_deinit(&r->by_file);
	fathom_key_map_deinit(&r->by_place);
	fathom_key_map_deinit(&r->by_module);
	fathom_key_map_deinit(&r->by_number);
	fathom_key_map_deinit(&r->by_thread);
	fathom_key_map_deinit(&r->by_group);
	r->by_pointer = r->by_name = r->by_file = r->by_place = r->by_module = r->by_number =
		r->by_thread = r->by_group = (struct fathom_key_map){ .n = 0 };
	fathom_array_free(&r->functions);
	fathom_array_free(&r->frames);
	free(r->chains);
	free(r->groups);
	free(r->reasons);
	free(r->wakers);
	r->chains = r->groups = r->reasons = r->wakers = NULL;
	if (r->named.choices)
		fathom_named_choices_deinit(&r->named);
	r->named = (struct fathom_named_choices){ .choices = NULL };
	fathom_choices_deinit(&r->choices);
}

void fathom_report_rows_deinit(struct fathom_report_rows *r)
{
	fathom_report_rows_trim(r);
	fathom_array_free(r);
	fathom_name_table_deinit(&r->texts);
}
