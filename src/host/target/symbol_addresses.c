/* SPDX-License-Identifier: MIT */
/* Symbols of a target by their names. */
#include "fathom/symbolize.h"
#include "host/jit/jit.h"
#include "host/symbol/name_search.h"
#include "host/target/target.h"

static bool search_linked(const struct fathom_space_module *m, void *data)
{
	struct fathom_name_search *s = data;

	fathom_module_search(m->module, s);
	fathom_name_search_take(s, m->bias, NULL, NULL);
	return s->n_left;
}

static bool search_demangled(const struct fathom_space_module *m, void *data)
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

/* Searches the code that the program has made itself, as @b has it. */
static fathom_err search_made(struct fathom_space_batch *b, struct fathom_name_search *s)
{
	struct fathom_jit_search *jit;

	FATHOM_TRY(fathom_jit_search_begin(b, &jit));
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

static fathom_err search_space(struct fathom_space *space, struct fathom_name_search *s,
			       struct fathom_errinfo *reterr)
{
	struct fathom_space_batch b;
	fathom_err err;

	FATHOM_TRY(fathom_space_batch_begin(space, &b, reterr));
	err = fathom_space_batch_walk(&b, search_linked, s);
	if (!err && fathom_name_search_wants_demangled(s))
		err = fathom_space_batch_walk(&b, search_demangled, s);
	if (!err && s->n_left)
		err = search_made(&b, s);
	fathom_space_batch_end(&b);
	return err ? fathom_fail(reterr, err, "", 0, fathom_err_name(err)) : FATHOM_OK;
}

static void search_file(struct fathom_module *m, struct fathom_name_search *s)
{
	fathom_module_search(m, s);
	fathom_name_search_take(s, 0, NULL, NULL);
	if (!fathom_name_search_wants_demangled(s))
		return;
	fathom_symbols_search_demangled(&m->symbols, s);
	fathom_name_search_take(s, 0, NULL, NULL);
}

static fathom_err search(struct fathom_target *target, struct fathom_name_search *s,
			 struct fathom_errinfo *reterr)
{
	if (target->kernel)
		return fathom_kernel_search(target->kernel, s, reterr);
	if (target->space)
		return search_space(target->space, s, reterr);
	search_file(target->module, s);
	return FATHOM_OK;
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
	struct fathom_name_search s;
	fathom_err err;

	if (n > UINT32_MAX / 2)
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				   "more names than one batch may have");
	if (target->kernel && fathom_kernel_is_hidden(target->kernel)) {
		memset(ret_reasons, FATHOM_REASON_NO_PERMISSION, n);
		return FATHOM_OK;
	}
	if (fathom_name_search_init(&s, names, n))
		return fathom_fail(reterr, FATHOM_E_MEMORY, "", 0, "out of memory");
	s.wants_all = wants_all;
	err = fathom_target_end_call(target, n ? search(target, &s, reterr) : FATHOM_OK, reterr);
	for (size_t i = 0; !err && i < n; i++) {
		const bool is_found = s.wanted[s.number_of[i]].is_found;

		ret_reasons[i] = is_found ? FATHOM_REASON_NONE : FATHOM_REASON_NO_SUCH_SYMBOL;
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
