/* SPDX-License-Identifier: MIT */
#include "cli/top_targets.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fathom/cache.h>
#include <fathom/symbolize.h>

#include "cli/common.h"

/*
 * An index is stored, within that time, when reading its file has taken so long, and again when it
 * has taken twice as long as then.
 */
#define STORE_ABOVE_MS  100
#define STORE_WITHIN_MS 1000

static void clear(struct top_target *t)
{
	fathom_target_release(t->target);
	free(t->path);
	*t = (struct top_target){ .target = NULL };
}

/* Returns whether @t is of the build that @m is of. */
static bool is_build(struct fathom_target *t, const struct fathom_profile_module *m)
{
	struct fathom_target_info info;

	fathom_target_get_info(t, &info);
	return info.kind == FATHOM_TARGET_FILE && info.build_id_size == m->build_id_size &&
	       memcmp(info.build_id, m->build_id, m->build_id_size) == 0;
}

/* Opens the file of @m in the place of @t; false if it is not of that build, or cannot be read. */
static bool open_target(struct top_target *t, struct fathom *session,
			const struct fathom_profile_resolve_options *options,
			const struct fathom_profile_module *m)
{
	const struct fathom_target_options where = { .size = sizeof where,
						     .sysroot = options->sysroot,
						     .debug_dirs = options->debug_dirs };
	char path[PATH_MAX];
	struct fathom_target *target;

	if (snprintf(path, sizeof path, "%s%s", options->sysroot ? options->sysroot : "",
		     m->path) >= (int)sizeof path ||
	    fathom_target_open_file(session, path, &where, &target, NULL))
		return false;
	if (!is_build(target, m)) {
		fathom_target_release(target);
		return false;
	}
	clear(t);
	t->target = target;
	t->path = must(strdup(m->path));
	return true;
}

/* Returns the target of @m's file; NULL if there is none. */
static struct top_target *find(struct top_targets *k, struct fathom *session,
			       const struct fathom_profile_resolve_options *options,
			       const struct fathom_profile_module *m)
{
	struct top_target *oldest = k->items;

	for (size_t i = 0; i < TOP_TARGETS; i++) {
		struct top_target *t = &k->items[i];

		if (t->target && strcmp(t->path, m->path) == 0 && is_build(t->target, m))
			return t;
		if (t->used < oldest->used)
			oldest = t;
	}
	return open_target(oldest, session, options, m) ? oldest : NULL;
}

/* Asks @t for the names of all places. */
static struct fathom_answers *ask(struct fathom_target *t, uint32_t flags,
				  const struct fathom_pc *pcs, size_t n)
{
	const struct fathom_symbolize_options o = { .size = sizeof o, .flags = flags };
	uint64_t *addresses = must(malloc(n * sizeof *addresses));
	uint8_t *kinds = must(malloc(n));
	struct fathom_answers *answers = NULL;
	fathom_err err;

	for (size_t i = 0; i < n; i++) {
		addresses[i] = pcs[i].address;
		kinds[i] = pcs[i].kind;
	}
	err = fathom_symbolize(t, &o, addresses, kinds, n, &answers, NULL);
	free(addresses);
	free(kinds);
	if (!err && !fathom_target_check(t, NULL))
		return answers;
	if (!err)
		fathom_answers_free(answers);
	return NULL;
}

/* Stores an index. It may fail: nobody has asked for it, and nothing is lost without it. */
static void store(struct top_target *t)
{
	const uint64_t cost = fathom_cache_cost_ms(t->target);

	if (cost <= 2 * t->stored_ms + STORE_ABOVE_MS)
		return;
	t->stored_ms = cost;
	(void)fathom_cache_store(t->target, 0, STORE_WITHIN_MS, NULL, NULL);
}

bool top_targets_ask(struct top_targets *k, struct fathom *session,
		     const struct fathom_profile_resolve_options *options,
		     const struct fathom_profile_module *m, const struct fathom_pc *pcs, size_t n,
		     struct fathom_answers **ret)
{
	struct top_target *t;

	if (m->kind != FATHOM_PROFILE_MODULE_FILE || !m->build_id_size || m->path[0] != '/')
		return false;
	t = find(k, session, options, m);
	if (!t)
		return false;
	t->used = ++k->n_batches;
	*ret = ask(t->target, options->flags, pcs, n);
	/* Others are looked for anew: the file has changed, or memory is short. */
	if (!*ret)
		top_targets_deinit(k);
	else
		store(t);
	return *ret;
}

void top_targets_deinit(struct top_targets *k)
{
	for (size_t i = 0; i < TOP_TARGETS; i++)
		clear(&k->items[i]);
}
