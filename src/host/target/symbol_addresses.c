/* SPDX-License-Identifier: MIT */
/* Symbols of a target by their names. */
#include "fathom/symbolize.h"
#include "host/jit/jit.h"
#include "host/module/module.h"
#include "host/symbol/name_search.h"
#include "host/target/target.h"

static bool search_linked(const struct fathom_module_at *m, void *data)
{
	struct fathom_name_search *s = data;

	fathom_module_search(m->module, s);
	fathom_name_search_take(s, m->bias, NULL, NULL);
	return s->n_left;
}

static bool search_demangled(const struct fathom_module_at *m, void *data)
{
	struct fathom_name_search *s = data;

	fathom_symbols_search_demangled(&m->module->symbols, s);
	fathom_name_search_take(s, m->bias, NULL, NULL);
	return fathom_name_search_wants_demangled(s);
}

/* One module of code that the program has made itself. */
struct made {
	const struct fathom_jit_search *search;
	size_t number;
};

static bool is_held(uint64_t avma, const void *data)
{
	const struct made *m = data;

	return fathom_jit_search_holds(m->search, m->number, avma);
}

/* Searches the code that the process which @p is has made itself. */
static fathom_err search_made(struct fathom_jit_process *p, struct fathom_name_search *s)
{
	struct fathom_jit_search *jit;

	FATHOM_TRY(fathom_jit_search_begin(p, &jit));
	for (size_t i = 0; i < fathom_jit_search_count(jit) && s->n_left; i++) {
		const struct made made = { jit, i };
		struct fathom_module *m = fathom_jit_search_module(jit, i);

		if (!m)
			continue;
		fathom_module_search(m, s);
		fathom_name_search_take(s, 0, is_held, &made);
		if (!fathom_name_search_wants_demangled(s))
			continue;
		fathom_symbols_search_demangled(&m->symbols, s);
		fathom_name_search_take(s, 0, is_held, &made);
	}
	fathom_jit_search_end(jit);
	return FATHOM_OK;
}

/* Searches all modules of @v for names as linked, then for demangled ones, then code without a
 * file. */
static fathom_err search_modules(struct fathom_view *v, struct fathom_name_search *s)
{
	struct fathom_jit_process *process = v->target->ops->jit ? v->target->ops->jit(v) : NULL;

	FATHOM_TRY(fathom_view_modules(v, search_linked, s));
	if (fathom_name_search_wants_demangled(s))
		FATHOM_TRY(fathom_view_modules(v, search_demangled, s));
	return process && s->n_left ? search_made(process, s) : FATHOM_OK;
}

/* Searches @target; *@ret_hidden is why it shows no addresses, if it does not. */
static fathom_err search(struct fathom_target *target, struct fathom_name_search *s,
			 enum fathom_reason *ret_hidden, struct fathom_errinfo *reterr)
{
	struct fathom_view *v;
	fathom_err err = FATHOM_OK;

	FATHOM_TRY(fathom_view_begin(target, FATHOM_VIEW_PLACES, &v, reterr));
	*ret_hidden = v->hidden;
	if (!v->hidden)
		err = target->ops->search ? target->ops->search(v, s) : search_modules(v, s);
	if (err)
		(void)fathom_view_fail(v, err, reterr);
	fathom_view_end(v);
	return err;
}

/* Calls @fn for the addresses of name @i, which @s has found. */
static void tell(struct fathom_name_search *s, size_t i, fathom_symbol_fn fn, void *data)
{
	const struct fathom_name_place *places;
	const size_t n = fathom_name_search_places(s, s->number_of[i], &places);

	for (size_t p = 0; p < n; p++)
		fn(data, i, places[p].address);
	if (!n)
		fn(data, i, s->wanted[s->number_of[i]].address);
}

/* Looks for @names; @wants_all of local symbols. */
static fathom_err find(struct fathom_target *target, const char *const *names, size_t n,
		       bool wants_all, uint8_t *ret_reasons, fathom_symbol_fn fn, void *data,
		       struct fathom_errinfo *reterr)
{
	enum fathom_reason hidden = FATHOM_REASON_NONE;
	struct fathom_name_search s;
	fathom_err err = FATHOM_OK;

	if (n > UINT32_MAX / 2)
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				   "more names than one batch may have");
	if (fathom_name_search_init(&s, names, n))
		return fathom_fail_memory(reterr);
	s.wants_all = wants_all;
	if (n)
		err = search(target, &s, &hidden, reterr);
	err = fathom_target_end_call(target, err, reterr);
	for (size_t i = 0; !err && i < n; i++) {
		const bool is_found = s.wanted[s.number_of[i]].is_found;

		ret_reasons[i] = (uint8_t)(is_found ? FATHOM_REASON_NONE
					   : hidden ? hidden
						    : FATHOM_REASON_NO_SUCH_SYMBOL);
		if (is_found)
			tell(&s, i, fn, data);
	}
	fathom_name_search_deinit(&s);
	return err;
}

fathom_err fathom_target_find_all_symbols(struct fathom_target *target, const char *const *names,
					  size_t n, uint8_t *ret_reasons, fathom_symbol_fn fn,
					  void *data, struct fathom_errinfo *reterr)
{
	return find(target, names, n, true, ret_reasons, fn, data, reterr);
}

static void store_address(void *data, size_t i, uint64_t address)
{
	((uint64_t *)data)[i] = address;
}

fathom_err fathom_target_find_symbols(struct fathom_target *target, const char *const *names,
				      size_t n, uint64_t *ret_addresses, uint8_t *ret_reasons,
				      struct fathom_errinfo *reterr)
{
	return find(target, names, n, false, ret_reasons, store_address, ret_addresses, reterr);
}

fathom_err fathom_target_find_symbol(struct fathom_target *target, const char *name,
				     uint64_t *ret_address)
{
	uint8_t reason;

	FATHOM_TRY(fathom_target_find_symbols(target, &name, 1, ret_address, &reason, NULL));
	return reason == FATHOM_REASON_NONE            ? FATHOM_OK
	       : reason == FATHOM_REASON_NO_PERMISSION ? FATHOM_E_OS
						       : FATHOM_E_NOT_FOUND;
}
