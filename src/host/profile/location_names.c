/* SPDX-License-Identifier: MIT */
/*
 * Names for the locations of a profile. All locations of one file are one batch, and one file is
 * open at a time. Addresses are those that the files state, so nothing has to be known of the
 * processes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "fathom/cache.h"
#include "fathom/target.h"
#include "host/base/option_struct.h"
#include "host/base/path.h"
#include "host/base/search_paths.h"
#include "host/file/debug_search.h"
#include "host/file/file.h"
#include "host/profile/in_memory.h"
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
	uint64_t bias;             /* of the addresses asked for */
	enum fathom_reason reason; /* why there are no names, the most telling */
};

/* Returns how much @reason tells: a file that is there tells more than one that is not. */
static int rank(enum fathom_reason reason)
{
	return reason == FATHOM_REASON_NONE ? 0 : reason == FATHOM_REASON_NO_FILE ? 1 : 2;
}

static void note_reason(struct naming *n, enum fathom_reason reason)
{
	if (rank(reason) > rank(n->reason))
		n->reason = reason;
}

/* Returns why a file that could not be opened names nothing. */
static enum fathom_reason reason_of(const struct fathom_errinfo *info)
{
	switch (info->err) {
	case FATHOM_E_OS:
		return info->os_errno == EACCES || info->os_errno == EPERM
			       ? FATHOM_REASON_NO_PERMISSION
			       : FATHOM_REASON_NO_FILE;
	case FATHOM_E_TIMEOUT:
		return FATHOM_REASON_TIMEOUT;
	case FATHOM_E_LIMIT:
		return FATHOM_REASON_LIMIT;
	case FATHOM_E_CHANGED:
		return FATHOM_REASON_CHANGED;
	case FATHOM_E_CORRUPT:
		return FATHOM_REASON_CORRUPT;
	}
	return FATHOM_REASON_NO_FILE;
}

/* Returns whether @err ends all. */
static bool is_fatal(fathom_err err)
{
	return err == FATHOM_E_CANCELLED || err == FATHOM_E_MEMORY || err == FATHOM_E_ARGUMENT;
}

/* Returns whether @id, of @size bytes, is the module's build-id: none, if it has none. */
static bool is_same_build(const struct naming *n, const uint8_t *id, uint32_t size)
{
	return size == n->module->build_id_size &&
	       (!size || memcmp(id, n->module->build_id, size) == 0);
}

/* Returns whether the file at @path, where build-ids do not differ, is the module's. */
static bool is_same_file(const struct naming *n, const char *path)
{
	struct fathom_file_id id;

	return n->module->build_id_size ||
	       (n->module->file_size && fathom_file_identify(path, &id) &&
		id.size == n->module->file_size && (uint64_t)id.mtime_ns == n->module->changed);
}

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

/* Names the locations from the file at @path, and sets *@ret_done, if it is the module's. */
static fathom_err try_file(struct naming *n, const char *path, bool *ret_done,
			   struct fathom_errinfo *reterr)
{
	const struct fathom_target_options where = { .size = sizeof where,
						     .sysroot = n->options->sysroot,
						     .debug_dirs = n->options->debug_dirs };
	struct fathom_target_info info;
	struct fathom_errinfo why = { .err = FATHOM_OK };
	struct fathom_answers *answers = NULL;
	struct fathom_target *t;
	fathom_err err = fathom_target_open_file(n->p->session, path, &where, &t, &why);

	if (err) {
		note_reason(n, reason_of(&why));
		if (is_fatal(err) && reterr)
			*reterr = why;
		return is_fatal(err) ? err : FATHOM_OK;
	}
	fathom_target_get_info(t, &info);
	if (info.kind != FATHOM_TARGET_FILE ||
	    !is_same_build(n, info.build_id, info.build_id_size) || !is_same_file(n, path)) {
		note_reason(n, FATHOM_REASON_BUILD_ID_MISMATCH);
	} else {
		err = ask(n, t, &answers, &why);
		if (!err)
			err = fathom_target_check(t, &why);
	}
	fathom_target_release(t);
	if (answers && !err) {
		*ret_done = true;
		return take_answers(n, answers, reterr);
	}
	fathom_answers_free(answers);
	if (err)
		note_reason(n, reason_of(&why));
	if (is_fatal(err) && reterr)
		*reterr = why;
	return is_fatal(err) ? err : FATHOM_OK;
}

/* Tries what debug directories have of the module's build-id: the file, and its debug file. */
static fathom_err try_debug_dirs(struct naming *n, bool *ret_done, struct fathom_errinfo *reterr)
{
	static const char *const suffixes[] = { "", ".debug" };
	const struct fathom_bytes id = { n->module->build_id, n->module->build_id_size };
	const char *const *dirs = fathom_debug_dirs(n->options->debug_dirs);
	const char *const root = n->options->sysroot ? n->options->sysroot : "";
	struct fathom_path path;

	for (; *dirs && !*ret_done; dirs++)
		for (size_t i = 0; i < 2 && !*ret_done; i++)
			if (fathom_debugfile_id_path(root, *dirs, id, suffixes[i], &path))
				FATHOM_TRY(try_file(n, path.text, ret_done, reterr));
	return FATHOM_OK;
}

/* Names the locations of a file. */
static fathom_err name_file(struct naming *n, bool *ret_done, struct fathom_errinfo *reterr)
{
	const char *sysroot = n->options->sysroot;
	struct fathom_path path;

	if (n->module->path[0] == '/') {
		if (sysroot && *sysroot &&
		    fathom_path_format(&path, "%s%s", sysroot, n->module->path))
			FATHOM_TRY(try_file(n, path.text, ret_done, reterr));
		if (!*ret_done)
			FATHOM_TRY(try_file(n, n->module->path, ret_done, reterr));
	}
	return *ret_done ? FATHOM_OK : try_debug_dirs(n, ret_done, reterr);
}

/* Names the locations of a vDSO, if this process has the same one. */
static fathom_err name_vdso(struct naming *n, bool *ret_done, struct fathom_errinfo *reterr)
{
	struct fathom_answers *answers = NULL;
	struct fathom_target *t;
	fathom_err err;

	n->bias = getauxval(AT_SYSINFO_EHDR);
	if (!n->bias || !n->module->build_id)
		return try_debug_dirs(n, ret_done, reterr);
	FATHOM_TRY(fathom_target_open_self(n->p->session, NULL, &t, reterr));
	err = ask(n, t, &answers, reterr);
	fathom_target_release(t);
	n->bias = 0;
	for (size_t i = 0; !err && i < n->n && !*ret_done; i++) {
		const struct fathom_module_info *m = fathom_answers_get(answers, i)->module;

		*ret_done = m && is_same_build(n, m->build_id, m->build_id_size);
	}
	if (!err && *ret_done)
		return take_answers(n, answers, reterr);
	fathom_answers_free(answers);
	return is_fatal(err) ? err : try_debug_dirs(n, ret_done, reterr);
}

static fathom_err name_module(struct naming *n, struct fathom_errinfo *reterr)
{
	const uint8_t kind = n->module->kind;
	bool done = false;

	if (kind == FATHOM_PROFILE_MODULE_FILE)
		FATHOM_TRY(name_file(n, &done, reterr));
	else if (kind == FATHOM_PROFILE_MODULE_VDSO)
		FATHOM_TRY(name_vdso(n, &done, reterr));
	else
		return FATHOM_OK;
	for (size_t i = 0; !done && i < n->n; i++)
		n->p->answers[n->places[i]].reason =
			(uint8_t)(n->reason ? n->reason : FATHOM_REASON_NO_FILE);
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
