/* SPDX-License-Identifier: MIT */
/*
 * Answers a batch of addresses of any target. Locates each address, groups those in one module at
 * one bias into a group, and asks the target itself to name the rest.
 */
#include <stdlib.h>

#include "fathom/compat.h"
#include "fathom/symbolize.h"
#include "host/base/progress.h"
#include "host/base/option_struct.h"
#include "host/symbolize/batch.h"
#include "host/space/target.h"
#include "safe/base/sort.h"

/* A batch while it is being answered. */
struct batch {
	struct fathom_view *view;
	const struct fathom_batch_options *options;
	const uint64_t *addresses;
	size_t n;
	struct fathom_answers *answers;
	struct fathom_keyed *keyed; /* place's key -> address number; room for 2n */
	uint32_t *places;           /* numbers of addresses, in the order of groups */
	uint32_t *rest;             /* numbers of addresses outside modules that may have names */
	size_t n_keyed;
	size_t n_rest;
};

static uint64_t looked_up(const struct batch *b, size_t i)
{
	return fathom_looked_up(b->options, b->addresses, i);
}

/* Locates all addresses: keys those inside modules, and begins the answers of the others. */
static fathom_err locate_all(struct batch *b)
{
	b->n_keyed = 0;
	b->n_rest = 0;
	for (size_t i = 0; i < b->n; i++) {
		struct fathom_place p;

		FATHOM_TRY(fathom_view_locate(b->view, looked_up(b, i), &p));
		if (p.holder) {
			b->keyed[b->n_keyed++] = (struct fathom_keyed){ p.key, i };
			continue;
		}
		*fathom_answers_renew(b->answers, i) =
			fathom_answer_without_module(b->addresses[i], p.reason);
		if (p.is_code)
			b->rest[b->n_rest++] = (uint32_t)i;
	}
	return FATHOM_OK;
}

/* Answers the group of @n @places, which are at @p; all addresses if @places is NULL. */
static fathom_err answer_group(const struct batch *b, const struct fathom_place *p,
			       const uint32_t *places, size_t n)
{
	struct fathom_module_group group = { .module = p->holder->module,
					     .addresses = b->addresses,
					     .places = places,
					     .n = n,
					     .bias = p->bias };

	FATHOM_TRY(fathom_answers_describe(b->answers, p->holder));
	group.info = p->holder->info;
	return fathom_symbolize_group(&group, b->options, b->answers);
}

/* Answers the keyed addresses: a run of one key, or of neighbours at one place, is one group. */
static fathom_err answer_keyed(struct batch *b)
{
	struct fathom_place p;
	struct fathom_place next;
	size_t end;

	fathom_sort_keyed(b->keyed, b->keyed + b->n_keyed, b->n_keyed);
	for (size_t i = 0; i < b->n_keyed; i++)
		b->places[i] = (uint32_t)b->keyed[i].value;
	for (size_t i = 0; i < b->n_keyed; i = end) {
		FATHOM_TRY(fathom_view_locate(b->view, looked_up(b, b->places[i]), &p));
		for (end = i + 1; end < b->n_keyed; end++) {
			if (b->keyed[end].key == b->keyed[end - 1].key)
				continue;
			FATHOM_TRY(
				fathom_view_locate(b->view, looked_up(b, b->places[end]), &next));
			if (next.holder != p.holder || next.bias != p.bias)
				break;
		}
		FATHOM_TRY(answer_group(b, &p, b->places + i, end - i));
	}
	return FATHOM_OK;
}

/* Asks the target to name the @n @places, all @in_modules or all outside. */
static fathom_err name_unresolved(const struct batch *b, uint32_t *places, size_t n,
				  bool in_modules)
{
	const struct fathom_unresolved rest = { .options = b->options,
						.addresses = b->addresses,
						.places = places,
						.n = n,
						.in_modules = in_modules,
						.answers = b->answers };

	return n ? b->view->target->ops->name_unresolved(b->view, &rest) : FATHOM_OK;
}

/* Asks the target to name code that the tables of its module do not name. */
static fathom_err name_nameless(struct batch *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->n_keyed; i++) {
		const uint32_t place = (uint32_t)b->keyed[i].value;
		const struct fathom_answer *a = &b->answers->answers[place];
		struct fathom_place p;

		if ((a->symbol && a->source != FATHOM_SOURCE_FDE) || a->frame)
			continue;
		FATHOM_TRY(fathom_view_locate(b->view, looked_up(b, place), &p));
		if (p.is_code)
			b->places[n++] = place;
	}
	return name_unresolved(b, b->places, n, true);
}

/* Answers the located addresses of the batch. */
static fathom_err answer_located(struct batch *b)
{
	FATHOM_TRY(answer_keyed(b));
	if (!b->view->target->ops->name_unresolved)
		return FATHOM_OK;
	FATHOM_TRY(name_unresolved(b, b->rest, b->n_rest, false));
	return name_nameless(b);
}

static bool reserve(struct batch *b)
{
	b->keyed = malloc((2 * b->n + 1) * sizeof *b->keyed);
	b->places = malloc((b->n + 1) * sizeof *b->places);
	b->rest = malloc((b->n + 1) * sizeof *b->rest);
	return b->keyed && b->places && b->rest;
}

/* Begins a view of all of @target or, if @few, of the batch's addresses only. */
static fathom_err begin_groups(struct batch *b, struct fathom_target *target, bool few,
			       struct fathom_errinfo *reterr)
{
	const bool lines = !(b->options->flags & FATHOM_NAMES_ONLY);
	uint64_t avmas[FATHOM_VIEW_FEW];

	for (size_t i = 0; few && i < b->n; i++)
		avmas[i] = looked_up(b, i);
	return target->ops->begin(target, lines ? FATHOM_VIEW_LINES : FATHOM_VIEW_PLACES,
				  few ? avmas : NULL, b->n, &b->view, reterr);
}

/* Answers the batch in b->view. */
static fathom_err answer_in_view(struct batch *b, struct fathom_errinfo *reterr)
{
	fathom_err err;

	if (b->view->everywhere) {
		err = answer_group(b, b->view->everywhere, NULL, b->n);
	} else {
		err = reserve(b) ? locate_all(b) : FATHOM_E_MEMORY;
		if (!err)
			err = answer_located(b);
		free(b->keyed);
		free(b->places);
		free(b->rest);
	}
	return err ? fathom_view_fail(b->view, err, reterr) : FATHOM_OK;
}

/* Answers the batch in one view; FATHOM_E_UNSUPPORTED if that needs a view of the whole target. */
static fathom_err answer_once(struct batch *b, struct fathom_target *target, bool few,
			      struct fathom_errinfo *reterr)
{
	fathom_err err;

	FATHOM_TRY(begin_groups(b, target, few, reterr));
	err = answer_in_view(b, reterr);
	fathom_view_end(b->view);
	return err;
}

static fathom_err answer(struct batch *b, struct fathom_target *target,
			 struct fathom_errinfo *reterr)
{
	const bool few = b->n <= FATHOM_VIEW_FEW;
	fathom_err err = answer_once(b, target, few, reterr);

	if (err == FATHOM_E_UNSUPPORTED && few)
		err = answer_once(b, target, false, reterr);
	return err || !target->ops->check ? err : target->ops->check(target, false, reterr);
}

/* Completes the answers, or frees them if @err. */
static fathom_err finish(struct batch *b, fathom_err err, struct fathom_answers **ret,
			 struct fathom_errinfo *reterr)
{
	if (!err && !fathom_answers_finish(b->answers))
		err = fathom_fail_memory(reterr);
	for (size_t i = 0; !err && b->options->kinds && i < b->n; i++)
		b->answers->answers[i].pc.kind = b->options->kinds[i];
	if (err)
		fathom_answers_free(b->answers);
	else
		*ret = b->answers;
	return err;
}

fathom_err fathom_target_answer(struct fathom_target *target,
				const struct fathom_batch_options *options,
				const uint64_t *addresses, size_t n,
				struct fathom_answers **ret_answers, struct fathom_errinfo *reterr)
{
	struct batch b = { .options = options, .addresses = addresses, .n = n };
	struct fathom_call call;
	fathom_err err;

	b.answers = fathom_answers_create(n, options->flags);
	if (!b.answers)
		return fathom_fail_memory(reterr);
	fathom_call_begin(&call, target->session);
	err = answer(&b, target, reterr);
	err = fathom_call_end(&call, err, reterr);
	return finish(&b, err, ret_answers, reterr);
}

fathom_err fathom_view_answer(struct fathom_view *v, const struct fathom_batch_options *options,
			      const uint64_t *addresses, size_t n,
			      struct fathom_answers **ret_answers, struct fathom_errinfo *reterr)
{
	struct batch b = { .view = v, .options = options, .addresses = addresses, .n = n };

	b.answers = fathom_answers_create(n, options->flags);
	if (!b.answers)
		return fathom_fail_memory(reterr);
	b.answers->serial = atomic_fetch_add(&v->target->session->serials, 1) + 1;
	return finish(&b, answer_in_view(&b, reterr), ret_answers, reterr);
}

/* Reads the options that only personalities use. */
static fathom_err read_compat(const struct fathom_compat_symbolize *options,
			      struct fathom_batch_options *ret)
{
	const uint32_t known = FATHOM_DWARF_NAMES | FATHOM_VARIABLES;
	struct fathom_compat_symbolize c = { 0 };

	if (!FATHOM_OPTIONS_READ(options, &c, known) || c.alias > FATHOM_ALIAS_LLVM)
		return FATHOM_E_ARGUMENT;
	ret->flags |= FATHOM_BATCH_COMPAT;
	ret->flags |= c.flags & FATHOM_DWARF_NAMES ? FATHOM_BATCH_DWARF_NAMES : 0u;
	ret->flags |= c.flags & FATHOM_VARIABLES ? FATHOM_BATCH_VARIABLES : 0u;
	ret->alias = (enum fathom_alias)c.alias;
	return FATHOM_OK;
}

/* Copies the options that the caller's header has; rejects those that ours lacks. */
static fathom_err read_options(const struct fathom_symbolize_options *options,
			       struct fathom_batch_options *ret)
{
	const uint32_t known = FATHOM_NAMES_ONLY | FATHOM_NO_DEMANGLE | FATHOM_ONE_SHOT;
	struct fathom_symbolize_options o = { 0 };

	if (!options)
		return FATHOM_OK;
	if (!FATHOM_OPTIONS_READ(options, &o, known) || o.reserved1)
		return FATHOM_E_ARGUMENT;
	ret->flags = o.flags;
	return o.compat ? read_compat(o.compat, ret) : FATHOM_OK;
}

/* Returns whether each of @n @kinds is one of enum fathom_pc_kind. */
static bool are_kinds(const uint8_t *kinds, size_t n)
{
	uint8_t all = 0;

	for (size_t i = 0; kinds && i < n; i++)
		all |= kinds[i];
	return all <= FATHOM_PC_RETURN;
}

fathom_err fathom_symbolize(struct fathom_target *target,
			    const struct fathom_symbolize_options *options,
			    const uint64_t *addresses, const uint8_t *kinds, size_t n,
			    struct fathom_answers **ret_answers, struct fathom_errinfo *reterr)
{
	struct fathom_batch_options o = { .kinds = kinds };

	if (read_options(options, &o))
		return fathom_fail_options(reterr);
	if (n > UINT32_MAX / 2)
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				   "more addresses than one batch may have");
	if (!are_kinds(kinds, n))
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				   "a kind of pc that this version does not know");
	return fathom_target_answer(target, &o, addresses, n, ret_answers, reterr);
}

fathom_err fathom_lookup(struct fathom_target *target, struct fathom_pc pc,
			 const struct fathom_symbolize_options *options,
			 const struct fathom_answer **ret_answer, struct fathom_errinfo *reterr)
{
	struct fathom_answers *answers;

	FATHOM_TRY(fathom_symbolize(target, options, &pc.address, &pc.kind, 1, &answers, reterr));
	*ret_answer = answers->answers;
	return FATHOM_OK;
}
