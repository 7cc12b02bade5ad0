/* SPDX-License-Identifier: MIT */
#include "host/symbol/name_search.h"

#include <stdlib.h>

/* Returns the number of the equal name that was added before, or FATHOM_NONE. */
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
	/* Characters that only demangled names have. */
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
	fathom_array_deinit(&s->places);
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

bool fathom_name_search_add_place(struct fathom_name_search *s, uint32_t number, uint64_t svma)
{
	if (!fathom_array_reserve(&s->places, sizeof(struct fathom_name_place), 1))
		return false;
	((struct fathom_name_place *)s->places.data)[s->places.n++] =
		(struct fathom_name_place){ svma, number };
	return true;
}

static int compare_places(const void *a, const void *b)
{
	const struct fathom_name_place *x = a;
	const struct fathom_name_place *y = b;

	if (x->wanted != y->wanted)
		return x->wanted < y->wanted ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

/* Sorts the places and removes duplicates. */
static void unite_places(struct fathom_name_search *s)
{
	struct fathom_name_place *p = s->places.data;
	size_t n = 0;

	if (s->places.n)
		qsort(p, s->places.n, sizeof *p, compare_places);
	for (size_t i = 0; i < s->places.n; i++)
		if (!n || compare_places(&p[n - 1], &p[i]) != 0)
			p[n++] = p[i];
	s->places.n = n;
	s->n_taken = 0; /* sorted: nothing is added from now on */
}

size_t fathom_name_search_places(struct fathom_name_search *s, uint32_t number,
				 const struct fathom_name_place **ret)
{
	const struct fathom_name_place *p;
	size_t low = 0;
	size_t high;
	size_t n = 0;

	if (s->n_taken)
		unite_places(s);
	p = s->places.data;
	high = s->places.n;
	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (p[mid].wanted < number)
			low = mid + 1;
		else
			high = mid;
	}
	while (low + n < s->places.n && p[low + n].wanted == number)
		n++;
	*ret = p + low;
	return n;
}

/* Returns whether @m answers for its name. */
static bool is_answer(const struct fathom_name_match *m, uint64_t bias,
		      bool (*holds)(uint64_t avma, const void *data), const void *data)
{
	return !m->ambiguous && (!holds || holds(m->svma + bias, data));
}

/* Takes the places of the module being searched whose name is found and that of local symbols. */
static void take_places(struct fathom_name_search *s, uint64_t bias,
			bool (*holds)(uint64_t avma, const void *data), const void *data)
{
	const struct fathom_name_match *matches = s->matches.data;
	struct fathom_name_place *p = s->places.data;

	for (size_t i = s->n_taken; i < s->places.n; i++) {
		const uint32_t match = s->wanted[p[i].wanted].match;

		if (match && matches[match - 1].is_local &&
		    is_answer(&matches[match - 1], bias, holds, data) &&
		    (!holds || holds(p[i].address + bias, data)))
			p[s->n_taken++] =
				(struct fathom_name_place){ p[i].address + bias, p[i].wanted };
	}
	s->places.n = s->n_taken;
}

void fathom_name_search_take(struct fathom_name_search *s, uint64_t bias,
			     bool (*holds)(uint64_t avma, const void *data), const void *data)
{
	const struct fathom_name_match *matches = s->matches.data;

	take_places(s, bias, holds, data);
	for (size_t i = 0; i < s->matches.n; i++) {
		const struct fathom_name_match *m = &matches[i];
		struct fathom_wanted *w = &s->wanted[m->wanted];

		w->match = 0;
		if (!is_answer(m, bias, holds, data))
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
