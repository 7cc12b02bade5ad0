/* SPDX-License-Identifier: MIT */
/*
 * Names for the locations of a profile. All locations of one file are one batch, and one file is
 * open at a time. Addresses are those that the files state, so nothing has to be known of the
 * processes.
 */
#include <stdlib.h>
#include <sys/auxv.h>

#include "fathom/cache.h"
#include "fathom/target.h"
#include "host/base/option_struct.h"
#include "host/profile/in_memory.h"
#include "host/profile/module_files.h"
#include "safe/base/error.h"

/* A file that took longer to read than this has its index stored, within that time. */
#define STORE_ABOVE_MS  100
#define STORE_WITHIN_MS 1000

/* The locations of one module. */
struct naming {
	struct fathom_profile *p;
	const struct fathom_profile_resolve_options *options;
	const struct fathom_profile_module *module;
	const uint32_t *places; /* numbers of the locations */
	size_t n;
	uint64_t bias; /* of the addresses asked for */
	struct fathom_module_files files;
};

/* Asks @t for the names of all locations. */
static fathom_err ask(const struct naming *n, struct fathom_target *t, struct fathom_answers **ret,
		      struct fathom_errinfo *reterr)
{
	const bool keeps = !(n->p->session->flags & FATHOM_NO_CACHE);
	struct fathom_symbolize_options o = { .size = sizeof o, .flags = n->options->flags };
	uint64_t *addresses = malloc(n->n * sizeof *addresses);
	uint8_t *kinds = malloc(n->n);
	fathom_err err;

	if (!keeps)
		o.flags |= FATHOM_ONE_SHOT;
	for (size_t i = 0; addresses && kinds && i < n->n; i++) {
		addresses[i] = n->p->locations[n->places[i]].pc.address + n->bias;
		kinds[i] = n->p->locations[n->places[i]].pc.kind;
	}
	err = addresses && kinds ? fathom_symbolize(t, &o, addresses, kinds, n->n, ret, reterr)
				 : fathom_fail_memory(reterr);
	free(addresses);
	free(kinds);
	/* An index that nobody asked for may fail: nothing is lost without it. */
	if (!err && keeps && fathom_cache_cost_ms(t) > STORE_ABOVE_MS)
		(void)fathom_cache_store(t, 0, STORE_WITHIN_MS, NULL, NULL);
	return err;
}

/* Gives all locations their answers. */
static fathom_err take_answers(const struct naming *n, struct fathom_answers *answers,
			       struct fathom_errinfo *reterr)
{
	if (!fathom_array_push(&n->p->batches, answers)) {
		fathom_answers_free(answers);
		return fathom_fail_memory(reterr);
	}
	for (size_t i = 0; i < n->n; i++)
		n->p->locations[n->places[i]].answer = fathom_answers_get(answers, i);
	return FATHOM_OK;
}

/* Names the locations from @t, a file of the module. */
static fathom_err name_from(void *data, struct fathom_target *t, bool *ret_done,
			    struct fathom_errinfo *reterr)
{
	const struct naming *n = data;
	struct fathom_answers *answers = NULL;
	fathom_err err = ask(n, t, &answers, reterr);

	if (!err)
		err = fathom_target_check(t, reterr);
	if (err) {
		fathom_answers_free(answers);
		return err;
	}
	*ret_done = true;
	return take_answers(n, answers, reterr);
}

/* Names the locations of a vDSO, if this process has the same one. */
static fathom_err name_vdso(struct naming *n, bool *ret_done, struct fathom_errinfo *reterr)
{
	struct fathom_answers *answers = NULL;
	struct fathom_target *t;
	fathom_err err;

	n->bias = getauxval(AT_SYSINFO_EHDR);
	if (!n->bias || !n->module->build_id)
		return fathom_module_files_try_debug(&n->files, ret_done, reterr);
	FATHOM_TRY(fathom_target_open_self(n->p->session, NULL, &t, reterr));
	err = ask(n, t, &answers, reterr);
	fathom_target_release(t);
	n->bias = 0;
	for (size_t i = 0; !err && i < n->n && !*ret_done; i++) {
		const struct fathom_module_info *m = fathom_answers_get(answers, i)->module;

		*ret_done = m && fathom_module_is_build(n->module, m->build_id, m->build_id_size);
	}
	if (!err && *ret_done)
		return take_answers(n, answers, reterr);
	fathom_answers_free(answers);
	return fathom_module_files_is_fatal(err)
		       ? err
		       : fathom_module_files_try_debug(&n->files, ret_done, reterr);
}

static fathom_err name_module(struct naming *n, struct fathom_errinfo *reterr)
{
	const uint8_t kind = n->module->kind;
	bool done = false;

	n->files = (struct fathom_module_files){ .session = n->p->session,
						 .module = n->module,
						 .sysroot = n->options->sysroot,
						 .debug_dirs = n->options->debug_dirs,
						 .use = name_from,
						 .data = n };
	if (kind == FATHOM_PROFILE_MODULE_FILE)
		FATHOM_TRY(fathom_module_files_try(&n->files, &done, reterr));
	else if (kind == FATHOM_PROFILE_MODULE_VDSO)
		FATHOM_TRY(name_vdso(n, &done, reterr));
	else
		return FATHOM_OK;
	for (size_t i = 0; !done && i < n->n; i++)
		n->p->answers[n->places[i]].reason =
			(uint8_t)(n->files.reason ? n->files.reason : FATHOM_REASON_NO_FILE);
	return FATHOM_OK;
}

/* Forgets the names that were found before. */
static void forget(struct fathom_profile *p)
{
	for (size_t i = 0; i < p->n_locations; i++)
		p->locations[i].answer = &p->answers[i];
	for (size_t i = 0; i < p->batches.n; i++)
		fathom_answers_free(p->batches.items[i]);
	p->batches.n = 0;
}

/* Returns whether names of @l have to be found. */
static bool is_wanted(const struct fathom_profile *p, size_t i)
{
	return p->locations[i].module != UINT32_MAX && !p->answers[i].symbol;
}

/*
 * Sorts the numbers of the locations to be named into @places by module; those of module m end
 * before @ends[m].
 */
static void sort_places(const struct fathom_profile *p, uint32_t *places, size_t *ends)
{
	size_t sum = 0;

	for (size_t i = 0; i < p->n_locations; i++)
		if (is_wanted(p, i))
			ends[p->locations[i].module]++;
	for (size_t m = 0; m < p->n_modules; m++) {
		const size_t n = ends[m];

		ends[m] = sum;
		sum += n;
	}
	for (size_t i = 0; i < p->n_locations; i++)
		if (is_wanted(p, i))
			places[ends[p->locations[i].module]++] = (uint32_t)i;
}

fathom_err fathom_profile_resolve(struct fathom_profile *profile,
				  const struct fathom_profile_resolve_options *options,
				  struct fathom_errinfo *reterr)
{
	struct fathom_profile_resolve_options o = { .size = sizeof o };
	uint32_t *places;
	size_t *ends;
	fathom_err err = FATHOM_OK;

	if (options && !FATHOM_OPTIONS_READ(options, &o, FATHOM_NAMES_ONLY | FATHOM_NO_DEMANGLE))
		return fathom_fail_options(reterr);
	forget(profile);
	places = malloc((profile->n_locations + 1) * sizeof *places);
	ends = calloc(profile->n_modules + 1, sizeof *ends);
	if (!places || !ends)
		err = fathom_fail_memory(reterr);
	else
		sort_places(profile, places, ends);
	for (size_t m = 0; !err && m < profile->n_modules; m++) {
		const size_t first = m ? ends[m - 1] : 0;
		struct naming n = { .p = profile,
				    .options = &o,
				    .module = &profile->modules[m],
				    .places = places + first,
				    .n = ends[m] - first };

		if (n.n)
			err = name_module(&n, reterr);
	}
	free(places);
	free(ends);
	return err;
}
