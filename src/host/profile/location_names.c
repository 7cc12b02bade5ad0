/* SPDX-License-Identifier: MIT */
/*
 * Names for places in modules: of the locations of a profile, or of samples while they are
 * recorded. All places in one file are one batch, and one file is open at a time. Addresses are
 * those that the files state, so nothing has to be known of the processes.
 */
#include <stdlib.h>
#include <sys/auxv.h>

#include "fathom/cache.h"
#include "fathom/target.h"
#include "host/base/option_struct.h"
#include "host/profile/in_memory.h"
#include "host/profile/module_files.h"
#include "safe/base/error.h"
#include "safe/base/text.h"

/* A file that took longer to read than this has its index stored, within that time. */
#define STORE_ABOVE_MS  100
#define STORE_WITHIN_MS 1000

/* Places in one module. */
struct naming {
	struct fathom *session;
	const struct fathom_profile_resolve_options *options;
	const struct fathom_profile_module *module;
	const struct fathom_pc *places;
	size_t n;
	uint64_t bias; /* of the addresses asked for */
	struct fathom_module_files files;
	struct fathom_answers *answers; /* of all places; NULL: there are none */
};

/* Asks @t for the names of all places. */
static fathom_err ask(const struct naming *n, struct fathom_target *t, struct fathom_answers **ret,
		      struct fathom_errinfo *reterr)
{
	const bool keeps = !(n->session->flags & FATHOM_NO_CACHE);
	struct fathom_symbolize_options o = { .size = sizeof o, .flags = n->options->flags };
	uint64_t *addresses = malloc(n->n * sizeof *addresses);
	uint8_t *kinds = malloc(n->n);
	fathom_err err;

	if (!keeps)
		o.flags |= FATHOM_ONE_SHOT;
	for (size_t i = 0; addresses && kinds && i < n->n; i++) {
		addresses[i] = n->places[i].address + n->bias;
		kinds[i] = n->places[i].kind;
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

/* Names the places from @t, a file of the module. */
static fathom_err name_from(void *data, struct fathom_target *t, bool *ret_done,
			    struct fathom_errinfo *reterr)
{
	struct naming *n = data;
	struct fathom_answers *answers = NULL;
	fathom_err err = ask(n, t, &answers, reterr);

	if (!err)
		err = fathom_target_check(t, reterr);
	if (err) {
		fathom_answers_free(answers);
		return err;
	}
	*ret_done = true;
	n->answers = answers;
	return FATHOM_OK;
}

/* Names the places in a vDSO, if this process has the same one. */
static fathom_err name_vdso(struct naming *n, bool *ret_done, struct fathom_errinfo *reterr)
{
	struct fathom_answers *answers = NULL;
	struct fathom_target *t;
	fathom_err err;

	n->bias = getauxval(AT_SYSINFO_EHDR);
	if (!n->bias || !n->module->build_id)
		return fathom_module_files_try_debug(&n->files, ret_done, reterr);
	FATHOM_TRY(fathom_target_open_self(n->session, NULL, &t, reterr));
	err = ask(n, t, &answers, reterr);
	fathom_target_release(t);
	n->bias = 0;
	for (size_t i = 0; !err && i < n->n && !*ret_done; i++) {
		const struct fathom_module_info *m = fathom_answers_get(answers, i)->module;

		*ret_done = m && fathom_module_is_build(n->module, m->build_id, m->build_id_size);
	}
	if (!err && *ret_done) {
		n->answers = answers;
		return FATHOM_OK;
	}
	fathom_answers_free(answers);
	return fathom_module_files_is_fatal(err)
		       ? err
		       : fathom_module_files_try_debug(&n->files, ret_done, reterr);
}

/* Names the places, if the file of their module is there. */
static fathom_err name_module(struct naming *n, struct fathom_errinfo *reterr)
{
	bool done = false;

	n->files = (struct fathom_module_files){ .session = n->session,
						 .module = n->module,
						 .sysroot = n->options->sysroot,
						 .debug_dirs = n->options->debug_dirs,
						 .use = name_from,
						 .data = n };
	switch (n->module->kind) {
	case FATHOM_PROFILE_MODULE_FILE:
		return fathom_module_files_try(&n->files, &done, reterr);
	case FATHOM_PROFILE_MODULE_VDSO:
		return name_vdso(n, &done, reterr);
	}
	return FATHOM_OK;
}

/* Gives all @places, numbers of locations, their answers, or the reason why there are none. */
static fathom_err take_answers(struct fathom_profile *p, const struct naming *n,
			       const uint32_t *places, struct fathom_errinfo *reterr)
{
	const bool is_of_file = n->module->kind == FATHOM_PROFILE_MODULE_FILE ||
				n->module->kind == FATHOM_PROFILE_MODULE_VDSO;

	if (n->answers && !fathom_array_push(&p->batches, n->answers)) {
		fathom_answers_free(n->answers);
		return fathom_fail_memory(reterr);
	}
	for (size_t i = 0; i < n->n; i++) {
		if (n->answers)
			p->locations[places[i]].answer = fathom_answers_get(n->answers, i);
		else if (is_of_file)
			p->answers[places[i]].reason =
				(uint8_t)(n->files.reason ? n->files.reason
							  : FATHOM_REASON_NO_FILE);
	}
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

/* Names the locations @places of module number @m. */
static fathom_err name_locations(struct fathom_profile *p, size_t m, const uint32_t *places,
				 size_t n_places,
				 const struct fathom_profile_resolve_options *options,
				 struct fathom_errinfo *reterr)
{
	struct fathom_pc *pcs = malloc(n_places * sizeof *pcs);
	struct naming n = { .session = p->session,
			    .options = options,
			    .module = &p->modules[m],
			    .places = pcs,
			    .n = n_places };
	fathom_err err;

	if (!pcs)
		return fathom_fail_memory(reterr);
	for (size_t i = 0; i < n_places; i++)
		pcs[i] = p->locations[places[i]].pc;
	err = name_module(&n, reterr);
	free(pcs);
	return err ? err : take_answers(p, &n, places, reterr);
}

/* Copies @options, which may be NULL, to @to; false if they are wrong. */
static bool read_options(const struct fathom_profile_resolve_options *options,
			 struct fathom_profile_resolve_options *to)
{
	return !options || FATHOM_OPTIONS_READ(options, to, FATHOM_NAMES_ONLY | FATHOM_NO_DEMANGLE);
}

fathom_err fathom_profile_resolve(struct fathom_profile *profile,
				  const struct fathom_profile_resolve_options *options,
				  struct fathom_errinfo *reterr)
{
	struct fathom_profile_resolve_options o = { .size = sizeof o };
	uint32_t *places;
	size_t *ends;
	fathom_err err = FATHOM_OK;

	if (!read_options(options, &o))
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

		if (ends[m] > first)
			err = name_locations(profile, m, places + first, ends[m] - first, &o,
					     reterr);
	}
	free(places);
	free(ends);
	return err;
}

/* Fails as there is no file that names the places of @n. */
static fathom_err fail_naming(const struct naming *n, struct fathom_errinfo *reterr)
{
	(void)fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", 0,
			  n->files.reason == FATHOM_REASON_BUILD_ID_MISMATCH
				  ? "the file is of another build than the module"
				  : "no file names what is in the module");
	if (reterr)
		fathom_copy_cstr(reterr->file, sizeof reterr->file, n->module->path);
	return FATHOM_E_NOT_FOUND;
}

fathom_err fathom_profile_name_module(struct fathom *session,
				      const struct fathom_profile_module *module,
				      const struct fathom_profile_resolve_options *options,
				      const struct fathom_pc *pcs, size_t n,
				      struct fathom_answers **ret_answers,
				      struct fathom_errinfo *reterr)
{
	struct fathom_profile_resolve_options o = { .size = sizeof o };
	struct naming naming = {
		.session = session, .options = &o, .module = module, .places = pcs, .n = n
	};

	if (!read_options(options, &o))
		return fathom_fail_options(reterr);
	if (n)
		FATHOM_TRY(name_module(&naming, reterr));
	if (!naming.answers)
		return fail_naming(&naming, reterr);
	*ret_answers = naming.answers;
	return FATHOM_OK;
}
