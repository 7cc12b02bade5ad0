/* SPDX-License-Identifier: MIT */
#include "host/events/named_choices.h"

#include <stdlib.h>
#include <string.h>

static bool is_file(const char *query)
{
	const size_t size = strlen(query);

	return size > 1 && query[size - 1] == ':';
}

fathom_err fathom_named_choices_init(struct fathom_named_choices *n,
				     const struct fathom_choices *choices, bool refuses_lines,
				     struct fathom_errinfo *reterr)
{
	*n = (struct fathom_named_choices){ .choices = choices };
	for (size_t i = 0; i < FATHOM_CHOICES; i++) {
		const size_t count = choices->queries[i].n;

		n->queries[i] = calloc(count + 1, sizeof *n->queries[i]);
		if (!n->queries[i])
			return fathom_fail_memory(reterr);
		for (size_t k = 0; k < count; k++) {
			struct fathom_find_query *q = &n->queries[i][k];
			const char *text = choices->queries[i].items[k];

			if (!is_file(text))
				FATHOM_TRY(fathom_find_query_parse(q, text, 0, &n->arena, reterr));
			else
				q->kind = FATHOM_QUERY_LINE;
			if (refuses_lines && q->kind == FATHOM_QUERY_LINE)
				return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
						   "a trace file has no lines to select by");
		}
	}
	return FATHOM_OK;
}

void fathom_named_choices_deinit(struct fathom_named_choices *n)
{
	for (size_t i = 0; i < FATHOM_CHOICES; i++) {
		for (size_t k = 0; n->queries[i] && k < n->choices->queries[i].n; k++)
			fathom_find_query_deinit(&n->queries[i][k]);
		free(n->queries[i]);
	}
	fathom_arena_deinit(&n->arena);
}

/* A function, as choices are compared with it. */
struct candidate {
	const struct fathom_named_choices *choices;
	const char *module;
	struct fathom_find_name name;
};

static bool has_chosen(void *data, size_t i)
{
	struct candidate *c = data;

	for (size_t k = 0; k < c->choices->choices->queries[i].n; k++) {
		const struct fathom_find_query *q = &c->choices->queries[i][k];

		if (q->kind != FATHOM_QUERY_LINE &&
		    (!q->library.data || fathom_find_query_takes_module(q, c->module)) &&
		    fathom_find_query_takes_name(q, &c->name))
			return true;
	}
	return false;
}

bool fathom_named_choices_want(struct fathom_named_choices *n, const char *linked,
			       const char *module, uint8_t *ret_selection)
{
	struct candidate c = { .choices = n, .module = module };
	bool is_wanted;

	fathom_find_name_set(&c.name, (struct fathom_str){ linked, (uint32_t)strlen(linked) });
	is_wanted = fathom_choices_want(n->choices, has_chosen, &c);
	*ret_selection = fathom_choices_selection(n->choices, has_chosen, &c);
	fathom_find_name_deinit(&c.name);
	return is_wanted;
}
