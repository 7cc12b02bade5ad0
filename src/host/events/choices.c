/* SPDX-License-Identifier: MIT */
#include "host/events/choices.h"

#include "host/events/event_filter.h"

static bool add(struct fathom_choices *c, size_t i, const char *const *queries, size_t n)
{
	for (size_t k = 0; k < n; k++)
		if (!fathom_array_push(&c->queries[i], queries[k]))
			return false;
	return true;
}

bool fathom_choices_init(struct fathom_choices *c, const struct fathom_trace_options *options)
{
	*c = (struct fathom_choices){ .queries[0].n = 0 };
	if (!add(c, FATHOM_CHOICE_ONLY, options->only, options->n_only) ||
	    !add(c, FATHOM_CHOICE_EXCEPT, options->except, options->n_except) ||
	    !add(c, FATHOM_CHOICE_UNDER, options->under, options->n_under))
		return false;
	for (size_t k = 0; k < options->n_at; k++)
		for (size_t i = 0; i < FATHOM_TRACE_ACTIONS; i++)
			if (options->at[k].actions >> i & 1 &&
			    !add(c, FATHOM_CHOICE_AT + i, &options->at[k].query, 1))
				return false;
	return true;
}

void fathom_choices_deinit(struct fathom_choices *c)
{
	for (size_t i = 0; i < FATHOM_CHOICES; i++)
		fathom_array_free(&c->queries[i]);
}

bool fathom_choices_want(const struct fathom_choices *c, fathom_choice_fn has, void *data)
{
	return (!c->queries[FATHOM_CHOICE_ONLY].n || has(data, FATHOM_CHOICE_ONLY)) &&
	       !(c->queries[FATHOM_CHOICE_EXCEPT].n && has(data, FATHOM_CHOICE_EXCEPT));
}

uint8_t fathom_choices_selection(const struct fathom_choices *c, fathom_choice_fn has, void *data)
{
	uint8_t selection = 0;

	if (c->queries[FATHOM_CHOICE_UNDER].n && has(data, FATHOM_CHOICE_UNDER))
		selection |= FATHOM_SELECT_UNDER;
	for (size_t i = 0; i < FATHOM_TRACE_ACTIONS; i++)
		if (c->queries[FATHOM_CHOICE_AT + i].n && has(data, FATHOM_CHOICE_AT + i))
			selection |= (uint8_t)(1u << i);
	return selection;
}
