/* SPDX-License-Identifier: MIT */
#include "host/trace/site_ranges.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of a word of the stack. */
#define WORD 8U

struct fathom_site_range *fathom_site_range_create(void)
{
	return calloc(1, sizeof(struct fathom_site_range));
}

void fathom_site_range_destroy(struct fathom_site_range *span)
{
	if (!span)
		return;
	fathom_sites_free(span->sites);
	fathom_arena_deinit(&span->arena);
	fathom_array_free(&span->functions);
	fathom_array_free(&span->code);
	fathom_array_free(span);
	free(span);
}

static int compare(const void *a, const void *b)
{
	const struct fathom_site_range_site *x = a;
	const struct fathom_site_range_site *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

/* Notes of which functions of @span all returns are recorded. */
static void note_returns(struct fathom_site_range *span)
{
	bool *have = calloc(span->functions.n + 1, sizeof *have);

	for (size_t i = 0; have && i < span->n; i++)
		have[span->items[i].function] |= span->items[i].has_returns;
	for (size_t i = 0; i < span->n; i++)
		span->items[i].has_returns =
			have && !span->lacks_returns && have[span->items[i].function];
	free(have);
}

void fathom_site_range_finish(struct fathom_site_range *span)
{
	if (!span->n)
		return;
	note_returns(span);
	qsort(span->items, span->n, sizeof *span->items, compare);
	span->first = span->items[0].number;
	span->last = span->items[span->n - 1].number;
}

/* Returns the linkage name of @f, and in *@ret_size its bytes without a version. */
static const char *name_of(const struct fathom_trace_function *f, size_t *ret_size)
{
	const char *name = f->linkage_name ? f->linkage_name : f->name;

	*ret_size = f->linkage_name ? strcspn(name, "@") : f->name_size;
	return name;
}

static uint64_t hash_of(const struct fathom_trace_function *f)
{
	uint64_t h = UINT64_C(14695981039346656037);
	size_t size;
	const char *name = name_of(f, &size);

	for (size_t i = 0; i < size; i++)
		h = (h ^ (uint8_t)name[i]) * UINT64_C(1099511628211);
	return h;
}

bool fathom_site_range_same_name(const struct fathom_trace_function *a,
				 const struct fathom_trace_function *b)
{
	size_t size_a, size_b;
	const char *name_a = name_of(a, &size_a);
	const char *name_b = name_of(b, &size_b);

	return size_a == size_b && !memcmp(name_a, name_b, size_a);
}

/* Adds the functions of @span, which has sites, by their names; without memory, fewer. */
static void add_names(struct fathom_site_ranges *s, const struct fathom_site_range *span)
{
	for (size_t i = 0; i < span->functions.n; i++) {
		uint32_t *number =
			fathom_key_map_at(&s->by_name, hash_of(&span->functions.items[i]));

		if (!number || *number != FATHOM_KEY_NEW ||
		    !fathom_array_push(&s->named, &span->functions.items[i]))
			continue;
		*number = (uint32_t)s->named.n - 1;
	}
}

/* Notes the names of what is new, if there are slots. */
static void note_names(struct fathom_site_ranges *s, const struct fathom_site_range *span)
{
	const bool is_slots = span->n && span->items[0].is_slot;

	if (is_slots && !s->has_slots)
		for (size_t i = 0; i < s->n; i++)
			if (!s->items[i]->n || !s->items[i]->items[0].is_slot)
				add_names(s, s->items[i]);
	s->has_slots |= is_slots;
	if (!is_slots && s->has_slots)
		add_names(s, span);
	if (s->has_slots)
		memset(s->cache, 0, sizeof s->cache);
}

bool fathom_site_ranges_add(struct fathom_site_ranges *s, struct fathom_site_range *span)
{
	size_t i;

	if (!fathom_array_room(s, 1)) {
		fathom_site_range_destroy(span);
		return false;
	}
	for (i = s->n; i && s->items[i - 1]->first > span->first; i--)
		s->items[i] = s->items[i - 1];
	s->items[i] = span;
	s->n++;
	note_names(s, span);
	memset(s->frames, 0, sizeof s->frames);
	return true;
}

void fathom_site_ranges_deinit(struct fathom_site_ranges *s)
{
	for (size_t i = 0; i < s->n; i++)
		fathom_site_range_destroy(s->items[i]);
	fathom_array_free(&s->named);
	fathom_key_map_deinit(&s->by_name);
	fathom_array_free(s);
}

const struct fathom_site_range *fathom_site_ranges_of(const struct fathom_site_ranges *s,
						      uint32_t number)
{
	const size_t k = FATHOM_BISECT(s->n, i, s->items[i]->first <= number);

	return k && s->items[k - 1]->last >= number ? s->items[k - 1] : NULL;
}

/* Returns the function with a site that has the name of @f, which a slot leads to; else @f. */
static const struct fathom_trace_function *function_behind(struct fathom_site_ranges *s,
							   const struct fathom_trace_function *f)
{
	const uint32_t *number = fathom_key_map_at(&s->by_name, hash_of(f));

	return number && *number < s->named.n &&
			       fathom_site_range_same_name(s->named.items[*number], f)
		       ? s->named.items[*number]
		       : f;
}

/* Finds site @number in the spans. */
static bool find_in_spans(struct fathom_site_ranges *s, uint32_t number,
			  struct fathom_site_range_found *ret)
{
	const struct fathom_site_range *span = fathom_site_ranges_of(s, number);
	size_t i;

	if (!span)
		return false;
	i = FATHOM_BISECT(span->n, j, span->items[j].number < number);
	if (i == span->n || span->items[i].number != number)
		return false;
	*ret = (struct fathom_site_range_found){
		.function = &span->functions.items[span->items[i].function],
		.number = number,
		.place = span->items[i].place,
		.selection = span->items[i].selection,
		.frame = span->items[i].frame,
		.size = span->items[i].size,
		.has_no_fp = span->items[i].has_no_fp,
		.has_no_caller = span->items[i].has_no_caller,
		.is_slot = span->items[i].is_slot,
		.has_returns = span->items[i].has_returns
	};
	if (ret->is_slot)
		ret->function = function_behind(s, ret->function);
	return true;
}

/* Returns the code that has the address with the low bits @low, as it was loaded last. */
static const struct fathom_site_range_code *code_at(const struct fathom_site_ranges *s,
						    uint32_t low)
{
	for (size_t i = s->n; i-- > 0;)
		for (size_t k = 0; k < s->items[i]->code.n; k++) {
			const struct fathom_site_range_code *code = &s->items[i]->code.items[k];

			if ((uint32_t)(low - (uint32_t)code->low) < code->high - code->low)
				return code;
		}
	return NULL;
}

const struct fathom_site_range_frame *fathom_site_ranges_frame(struct fathom_site_ranges *s,
							       uint32_t caller)
{
	struct fathom_site_range_frame *found =
		&s->frames[(caller ^ caller >> 12) % FATHOM_SITE_RANGE_CACHE];
	const struct fathom_unwind_rule *rule = NULL;
	const struct fathom_site_range_code *code;

	if (found->caller == caller)
		return found;
	code = code_at(s, caller - 1);
	if (code && code->rules)
		rule = fathom_unwind_table_find(
			code->rules,
			code->low + (uint32_t)(caller - 1 - (uint32_t)code->low) - code->bias);
	*found = (struct fathom_site_range_frame){ .caller = caller };
	if (!rule || rule->cfa_offset <= 0)
		return found;
	/*
	 * The CFA is as far above the recorded stack pointer as sp at the call is above the call's.
	 */
	if (rule->kind == FATHOM_UNWIND_SP)
		found->words = (uint32_t)rule->cfa_offset / WORD;
	found->is_by_fp = rule->kind == FATHOM_UNWIND_FP;
	if (found->is_by_fp)
		found->words = (uint32_t)rule->cfa_offset / WORD - code->above;
	return found;
}

const struct fathom_site_range_found *fathom_site_ranges_find(struct fathom_site_ranges *s,
							      uint32_t number)
{
	struct fathom_site_range_found *found =
		&s->cache[(number ^ number >> 12) % FATHOM_SITE_RANGE_CACHE];

	if (found->function && found->number == number)
		return found;
	return find_in_spans(s, number, found) ? found : NULL;
}
