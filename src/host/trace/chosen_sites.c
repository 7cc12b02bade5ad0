/* SPDX-License-Identifier: MIT */
#include "host/trace/chosen_sites.h"

#include "host/base/context.h"

fathom_err fathom_loader_init(struct fathom_loader *l, struct fathom *session,
			      const struct fathom_trace_options *options,
			      struct fathom_errinfo *reterr)
{
	*l = (struct fathom_loader){ .session = session, .options = options };
	if (!fathom_choices_init(&l->choices, options))
		return FATHOM_E_MEMORY;
	for (size_t i = 0; i < FATHOM_CHOICES; i++)
		FATHOM_TRY(fathom_selection_init(&l->chosen[i], l->choices.queries[i].items,
						 l->choices.queries[i].n));
	return fathom_named_choices_init(&l->named, &l->choices, false, reterr);
}

void fathom_loader_deinit(struct fathom_loader *l)
{
	for (size_t i = 0; i < FATHOM_CHOICES; i++)
		fathom_selection_deinit(&l->chosen[i]);
	fathom_named_choices_deinit(&l->named);
	fathom_choices_deinit(&l->choices);
	fathom_sites_memo_deinit(&l->memo);
}

/* Returns whether a query is for a file: then lines are needed. */
static bool needs_lines(const struct fathom_loader *l)
{
	for (size_t i = 0; i < FATHOM_CHOICES; i++)
		if (fathom_selection_has_files(&l->chosen[i]))
			return true;
	return false;
}

fathom_err fathom_loader_list(struct fathom_loader *l, struct fathom_target *target,
			      struct fathom_sites_choice *choice, struct fathom_sites **ret,
			      struct fathom_errinfo *reterr)
{
	const struct fathom_sites_options names = { .size = sizeof names,
						    .flags = FATHOM_SITES_NAMES };
	struct fathom_sites *sites;
	fathom_err err = FATHOM_OK;

	choice->memo = &l->memo;
	choice->with_rules = true;
	choice->with_lines = needs_lines(l);
	FATHOM_TRY(fathom_sites_list(target, &names, choice, &sites, reterr));
	for (size_t i = 0; fathom_sites_count(sites) && i < FATHOM_CHOICES && !err; i++)
		err = fathom_selection_find(&l->chosen[i], target, reterr);
	if (err)
		fathom_sites_free(sites);
	else
		*ret = sites;
	return err;
}

/* A site whose function is looked for among what was chosen. */
struct candidate {
	struct fathom_loader *loader;
	const struct fathom_site *site;
};

static bool has_chosen(void *data, size_t i)
{
	const struct candidate *c = data;

	return fathom_selection_has(&c->loader->chosen[i], c->site);
}

bool fathom_loader_wants(struct fathom_loader *l, const struct fathom_site *s)
{
	struct candidate c = { l, s };

	if (s->place != FATHOM_SITE_ENTRY && !(l->options->flags & FATHOM_TRACE_EXITS))
		return false;
	return fathom_choices_want(&l->choices, has_chosen, &c);
}

/* Returns the index of the function of @s in @span, adding it; SIZE_MAX without memory. */
static size_t function_of(struct fathom_loader *l, struct fathom_site_range *span,
			  const struct fathom_site_module *m, const struct fathom_site *s)
{
	const struct fathom_answer *a = s->answer;
	struct fathom_trace_function f = { .name = a->symbol ? a->symbol : "??",
					   .linkage_name = a->linkage_name,
					   .module = m->path,
					   .address = s->function,
					   .module_address = a->module_address,
					   .number = l->n_functions };

	/* Sites are sorted: those of one function follow each other. */
	if (span->functions.n &&
	    span->functions.items[span->functions.n - 1].address == s->function)
		return span->functions.n - 1;
	f.name_size = a->symbol ? a->symbol_size : 2;
	if (!fathom_array_push(&span->functions, f))
		return SIZE_MAX;
	l->n_functions++;
	return span->functions.n - 1;
}

static const uint8_t refusals[FATHOM_PATCH_REFUSALS] = {
	[FATHOM_PATCH_NO_ROOM] = FATHOM_TRACE_NO_ROOM,
	[FATHOM_PATCH_CHANGED] = FATHOM_TRACE_CHANGED,
	[FATHOM_PATCH_TOO_FAR] = FATHOM_TRACE_TOO_FAR,
	[FATHOM_PATCH_NO_FRAME] = FATHOM_TRACE_NO_FRAME,
};

void fathom_loader_refuse(struct fathom_loader *l, enum fathom_patch_refusal why)
{
	l->n_refused[refusals[why]]++;
}

fathom_err fathom_loader_add(struct fathom_loader *l, struct fathom_site_range *span,
			     const struct fathom_site_module *m, const struct fathom_site *s,
			     struct fathom_site_range_site *site)
{
	const size_t function = function_of(l, span, m, s);
	struct candidate c = { l, s };

	site->size = s->answer->size < UINT32_MAX ? (uint32_t)s->answer->size : 0;
	site->function = (uint32_t)function;
	site->selection = fathom_choices_selection(&l->choices, has_chosen, &c);
	/* A function that ends in a jump has no return, unless its compiler sees to it. */
	site->has_returns = s->place != FATHOM_SITE_ENTRY &&
			    (s->kind == FATHOM_SITE_CYG_PROFILE || s->kind == FATHOM_SITE_XRAY);
	l->n_sites++;
	l->n_returns += s->place != FATHOM_SITE_ENTRY;
	return function != SIZE_MAX && fathom_array_push(span, *site) ? FATHOM_OK : FATHOM_E_MEMORY;
}

bool fathom_loader_add_code(const struct fathom_sites *sites, const struct fathom_site_module *m,
			    uint32_t above, struct fathom_site_range *span)
{
	const struct fathom_site *first = fathom_sites_get(sites, m->first);
	const struct fathom_site *last = fathom_sites_get(sites, m->first + m->count - 1);
	const struct fathom_site_range_code code = {
		.low = first->function,
		.high = last->address + last->size + last->answer->size,
		.bias = m->bias,
		.above = above,
		.rules = fathom_sites_rules(sites, first->module),
	};

	return fathom_array_push(&span->code, code);
}
