/* SPDX-License-Identifier: MIT */
#include "name_search.h"

/* The number of the equal name among those that were added; FATHOM_NONE when there is none. */
static uint32_t find_equal(const struct fathom_name_search *s, struct fathom_str name)
{
	for (uint32_t k = fathom_name_keys_first(&s->keys, name.data, name.size); k;
	     k = fathom_name_keys_next(&s->keys, k))
		if (str_equal(s->wanted[s->keys.item[k - 1].value].name, name))
			return s->keys.item[k - 1].value;
	return FATHOM_NONE;
}

static void read_name(const char *name, struct fathom_wanted *ret)
{
	/* Names that are not mangled do not hold these. */
	static const bool demangled[256] = { ['('] = true, [':'] = true, ['<'] = true };
	uint32_t size = 0;

	*ret = (struct fathom_wanted){ .address = 0 };
	for (; name[size]; size++)
		ret->is_demangled |= demangled[(uint8_t)name[size]];
	ret->name = (struct fathom_str){ name, size };
}

fathom_err fathom_name_search_init(struct fathom_name_search *s, const char *const *names, size_t n)
{
	*s = (struct fathom_name_search){ .wanted = malloc((n + 1) * sizeof *s->wanted),
					  .number_of = malloc((n + 1) * sizeof *s->number_of) };
	if (!s->wanted || !s->number_of || !fathom_name_keys_init(&s->keys, n)) {
		fathom_name_search_deinit(s);
		return FATHOM_E_MEMORY;
	}
	for (size_t i = 0; i < n; i++) {
		struct fathom_wanted w;

		read_name(names[i], &w);
		s->number_of[i] = find_equal(s, w.name);
		if (s->number_of[i] != FATHOM_NONE)
			continue;
		s->wanted[s->n_wanted] = w;
		fathom_name_keys_add(&s->keys, w.name, s->n_wanted);
		s->number_of[i] = s->n_wanted++;
	}
	s->n_left = s->n_wanted;
	return FATHOM_OK;
}

void fathom_name_search_deinit(struct fathom_name_search *s)
{
	free(s->wanted);
	free(s->number_of);
	fathom_name_keys_deinit(&s->keys);
	fathom_array_deinit(&s->matches);
}

struct fathom_name_match *fathom_name_search_match(struct fathom_name_search *s, uint32_t number)
{
	struct fathom_wanted *w = &s->wanted[number];
	struct fathom_name_match *m;

	if (!w->match) {
		if (!fathom_array_reserve(&s->matches, sizeof *m, 1))
			return NULL;
		m = (struct fathom_name_match *)s->matches.data + s->matches.n++;
		*m = (struct fathom_name_match){ .wanted = number };
		w->match = (uint32_t)s->matches.n;
	}
	return (struct fathom_name_match *)s->matches.data + w->match - 1;
}

void fathom_name_search_take(struct fathom_name_search *s, uint64_t bias,
			     bool (*holds)(uint64_t avma, const void *data), const void *data)
{
	const struct fathom_name_match *matches = s->matches.data;

	for (size_t i = 0; i < s->matches.n; i++) {
		const struct fathom_name_match *m = &matches[i];
		struct fathom_wanted *w = &s->wanted[m->wanted];

		w->match = 0;
		if (m->ambiguous || (holds && !holds(m->svma + bias, data)))
			continue;
		w->address = m->svma + bias;
		w->is_found = true;
		s->n_left--;
	}
	s->matches.n = 0;
}

bool fathom_name_search_wants_demangled(const struct fathom_name_search *s)
{
	for (uint32_t i = 0; s->n_left && i < s->n_wanted; i++)
		if (s->wanted[i].is_demangled && !s->wanted[i].is_found)
			return true;
	return false;
}
