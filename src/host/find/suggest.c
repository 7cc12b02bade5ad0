/* SPDX-License-Identifier: MIT */
/* Suggests the symbol nearest to a mistyped name. */
#include <limits.h>

#include "host/base/near.h"
#include "host/base/progress.h"
#include "host/find/search.h"
#include "host/space/target.h"

/* Most symbols that one message looks at, and most that it demangles. */
#define MOST_SYMBOLS (1u << 22)
#define MOST_NAMES   100000u

/* Symbols between two questions: some milliseconds. */
#define SYMBOLS_PER_QUESTION 16384

struct near_search {
	struct fathom_str wanted;
	unsigned most;         /* most edits allowed */
	bool whole;            /* the wanted name has parameters */
	uint32_t symbols_left; /* of MOST_SYMBOLS */
	uint32_t names_left;   /* of MOST_NAMES */
	struct fathom_find_name name;
	struct fathom_pace pace;
	bool is_cancelled;
	unsigned score;              /* of best; lower is better */
	char best[FATHOM_NEAR_SIZE]; /* "" for none yet */
};

/* Takes @shown, @slips edits away, if it is better than best. */
static void take_suggestion(struct near_search *s, struct fathom_str shown, unsigned slips,
			    bool local, bool demangled)
{
	const unsigned score = 4 * slips + 2 * local + demangled;

	if (shown.size >= sizeof s->best || score > s->score ||
	    (score == s->score &&
	     str_compare(shown, (struct fathom_str){ s->best, (uint32_t)strlen(s->best) }) >= 0))
		return;
	s->score = score;
	memcpy(s->best, shown.data, shown.size);
	s->best[shown.size] = '\0';
}

/* Compares the demangled form of @linked. */
static void compare_demangled(struct near_search *s, struct fathom_str linked, bool local)
{
	struct fathom_str shown;
	struct fathom_str compared;
	unsigned slips;

	if (!s->names_left)
		return;
	s->names_left--;
	fathom_find_name_set(&s->name, linked);
	shown = fathom_find_name_shown(&s->name);
	if (!s->name.demangled.data)
		return;
	compared = s->whole || !s->name.plain.data ? shown : s->name.plain;
	slips = fathom_near_distance(s->wanted, compared, s->most);
	/* Parameters identify one function; if they are too long, use the bare name. */
	if (slips <= s->most)
		take_suggestion(s, shown.size < sizeof s->best ? shown : s->name.plain, slips,
				local, true);
}

static void compare_linked(struct near_search *s, struct fathom_str linked, bool local)
{
	const unsigned slips = fathom_near_distance(s->wanted, linked, s->most);

	if (slips <= s->most)
		take_suggestion(s, linked, slips, local, false);
}

static void look_at(struct near_search *s, const struct fathom_symtab *t, uint32_t i)
{
	struct fathom_symbol symbol;
	struct fathom_str version;
	struct fathom_str linked;
	struct fathom_str name;
	char copy[1024];

	fathom_symtab_get(t, i, &symbol);
	name = fathom_symtab_name(t, &symbol);
	if (!name.data || !fathom_symbol_is_namable(t, &symbol, name))
		return;
	linked = fathom_symtab_base_name(t, name, &version);
	if (version.data && linked.size < sizeof copy) {
		memcpy(copy, linked.data, linked.size);
		copy[linked.size] = '\0';
		linked.data = copy;
	}
	compare_linked(s, linked, symbol.bind == STB_LOCAL);
	if (linked.size > 2 && linked.data[0] == '_')
		compare_demangled(s, linked, symbol.bind == STB_LOCAL);
}

/* Counts a symbol that is to be compared; returns false at the limit, or if it was cancelled. */
static bool count_symbol(struct near_search *s)
{
	s->is_cancelled = s->is_cancelled || !fathom_keeps_pace(&s->pace);
	if (!s->symbols_left || s->is_cancelled)
		return false;
	s->symbols_left--;
	return true;
}

/* Compares the symbols of @set; returns false once there is to be no other. */
static bool search_set(struct near_search *s, const struct fathom_symbol_set *set)
{
	for (uint32_t t = 0; t < set->n_tables; t++)
		for (uint32_t i = 1; i < set->table[t].view.count && count_symbol(s); i++)
			look_at(s, &set->table[t].view, i);
	return s->symbols_left && !s->is_cancelled;
}

static bool search_module(const struct fathom_module_at *m, void *data)
{
	return search_set(data, &m->module->symbols);
}

/* Compares a name that the target itself lists. */
static bool look_at_listed(struct fathom_str name, bool is_local, void *data)
{
	struct near_search *s = data;

	if (!count_symbol(s))
		return false;
	compare_linked(s, name, is_local);
	return true;
}

static fathom_err search(struct near_search *s, struct fathom_target *target,
			 struct fathom_errinfo *reterr)
{
	struct fathom_view *v;
	fathom_err err;

	if (!fathom_goes_on(target->session, FATHOM_PHASE_FIND, 0, 0))
		return FATHOM_E_CANCELLED;
	FATHOM_TRY(fathom_view_begin(target, FATHOM_VIEW_PLACES, &v, reterr));
	/* In the kernel that has read a file. */
	(void)fathom_goes_on(target->session, FATHOM_PHASE_FIND, 0, 0);
	err = target->ops->names ? target->ops->names(v, look_at_listed, s)
				 : fathom_view_modules(v, search_module, s);
	if (err)
		(void)fathom_view_fail(v, err, reterr);
	fathom_view_end(v);
	return err;
}

fathom_err fathom_near_symbol(struct fathom_target *target, const char *name, char *buf,
			      struct fathom_errinfo *reterr)
{
	const uint32_t size = (uint32_t)strnlen(name, FATHOM_NEAR_SIZE);
	struct near_search s = { .wanted = { name, size },
				 .most = fathom_near_slips(size),
				 .whole = strchr(name, '(') != NULL,
				 .symbols_left = MOST_SYMBOLS,
				 .names_left = MOST_NAMES,
				 .pace = fathom_pace_init(target->session, SYMBOLS_PER_QUESTION),
				 .score = UINT_MAX };
	struct fathom_call call;
	fathom_err err;

	fathom_call_begin(&call, target->session);
	err = s.most ? search(&s, target, reterr) : FATHOM_OK;
	fathom_find_name_deinit(&s.name);
	err = fathom_call_end(&call, fathom_target_end_call(target, err, reterr), reterr);
	if (err)
		return err;
	if (!s.best[0])
		return fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", 0,
				   "no symbol has a name like it");
	memcpy(buf, s.best, sizeof s.best);
	return FATHOM_OK;
}
