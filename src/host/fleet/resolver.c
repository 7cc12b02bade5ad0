/* SPDX-License-Identifier: MIT */
/*
 * Rows of many builds: sorts them by build, opens as many builds as there is room for (a turn),
 * answers those in parallel, each as one batch of different addresses, and goes on with the rest.
 */
#include <stdlib.h>
#include <string.h>

#include "fathom/resolve.h"
#include "fathom/symbolize.h"
#include "host/base/array.h"
#include "host/base/clock.h"
#include "host/base/option_struct.h"
#include "host/base/pool.h"
#include "host/base/progress.h"
#include "host/fleet/open_builds.h"
#include "host/module/cache_read.h"
#include "host/module/module.h"
#include "host/space/target.h"
#include "safe/base/error.h"

#define DEFAULT_MISSING_MS 60000

#define FLAGS (FATHOM_RESOLVER_FILE_OFFSETS | FATHOM_RESOLVER_STORE_PUT)

/* Rows of a call that are worth a second thread. */
#define ALONE_ROWS 4096

struct fathom_resolver {
	struct fathom *session; /* acquired */
	struct fathom_open_builds builds;
	uint32_t flags;
	uint32_t symbolize_flags;
	uint32_t store_ms; /* for all that a call asks of the stores */
};

struct fathom_row_answers {
	const struct fathom_answer **rows;
	struct fathom_answer *unanswered; /* of the rows without an answer of a file */
	struct fathom_answers **parts;    /* of the groups */
	size_t n_parts;
};

/* The rows of one build. */
struct group {
	struct fathom_open_build *build; /* in this turn; NULL: not opened */
	size_t first;                    /* in the order */
	size_t n;
	struct fathom_answers *answers;
	uint32_t *unique; /* of each row, its answer, or NONE; NULL: answers are one for each row */
	size_t n_equal;
	uint8_t reason;  /* enum fathom_reason: why there are no answers */
	bool is_known;   /* its build was open or missing before the call */
	bool is_changed; /* its file has, so it is asked again */
	bool is_lost;    /* its index could not be read on, so it is closed */
	bool has_no_memory;
};

/* No answer: the offset is nowhere in memory. */
#define NONE UINT32_MAX

/* The state of one call. */
struct asking {
	struct fathom_resolver *r;
	const struct fathom_rows *rows;
	uint32_t *order; /* numbers of rows, by build */
	size_t *ends;    /* of each build, in the order */
	struct group *groups;
	struct group **turn; /* to be answered now */
	size_t n_turn;
	struct fathom_row_answers *result;
	bool is_cancelled;
};

/* Groups. */

/* Sorts the numbers of the rows by build; those of build b end before ends[b]. */
static void sort_rows(struct asking *a)
{
	const struct fathom_rows *rows = a->rows;
	size_t sum = 0;

	for (size_t i = 0; i < rows->n; i++)
		a->ends[rows->row_builds[i]]++;
	for (size_t b = 0; b < rows->n_builds; b++) {
		const size_t n = a->ends[b];

		a->groups[b] = (struct group){ .first = sum, .n = n };
		a->ends[b] = sum;
		sum += n;
	}
	for (size_t i = 0; i < rows->n; i++)
		a->order[a->ends[rows->row_builds[i]]++] = (uint32_t)i;
}

static uint8_t kind_of(const struct asking *a, uint32_t row)
{
	return a->rows->kinds ? a->rows->kinds[row] : FATHOM_PC_EXACT;
}

/* Equal rows of a group: its different addresses, and a hash table of them. */
struct distinct {
	uint64_t *addresses;
	uint8_t *kinds;
	uint32_t *slots; /* a number of an address, plus 1 */
	size_t mask;
	size_t n;
};

static void distinct_deinit(struct distinct *d)
{
	free(d->addresses);
	free(d->kinds);
	free(d->slots);
}

static bool distinct_init(struct distinct *d, size_t n)
{
	size_t cap = 16;

	while (cap < 2 * n)
		cap *= 2;
	*d = (struct distinct){ .addresses = malloc(n * sizeof *d->addresses),
				.kinds = malloc(n),
				.slots = calloc(cap, sizeof *d->slots),
				.mask = cap - 1 };
	return d->addresses && d->kinds && d->slots;
}

/* Returns the number of @address, which is added if it is new. */
static uint32_t distinct_add(struct distinct *d, uint64_t seed, uint64_t address, uint8_t kind)
{
	uint64_t hash = (address ^ seed) * UINT64_C(0x9e3779b97f4a7c15);
	size_t at;

	hash = (hash ^ hash >> 32) * UINT64_C(0x9e3779b97f4a7c15);
	for (at = (size_t)(hash >> 20) & d->mask; d->slots[at]; at = (at + 1) & d->mask) {
		const uint32_t i = d->slots[at] - 1;

		if (d->addresses[i] == address && d->kinds[i] == kind)
			return i;
	}
	d->addresses[d->n] = address;
	d->kinds[d->n] = kind;
	d->slots[at] = (uint32_t)++d->n;
	return (uint32_t)(d->n - 1);
}

/* Finds the stated address of @number, an offset in the file of @t; false if it is nowhere. */
static bool stated_address(const struct fathom_target *t, uint64_t number, uint8_t kind,
			   uint64_t *ret)
{
	const struct fathom_image *image = &t->stated->main->image;
	/* A return address may be that of the first byte after the segment. */
	const uint64_t less = kind == FATHOM_PC_RETURN && number ? 1 : 0;

	if (!fathom_image_svma(image, number - less, ret))
		return false;
	*ret += less;
	return true;
}

/* Returns whether offsets in the file of @t are known: they are not those of its debug file. */
static bool has_offsets(const struct fathom_target *t)
{
	const struct fathom_image *image = &t->stated->main->image;
	const struct fathom_cache_file *c = t->stated->cache;
	struct fathom_segment s;
	uint8_t byte;

	if (c && c->pages)
		return c->pages->has_file;
	for (uint32_t i = 0; i < image->phnum; i++)
		if (fathom_image_segment(image, i, &s) && s.type == PT_LOAD && (s.flags & PF_X) &&
		    s.filesz)
			return fathom_object_read(t->stated->main, s.vaddr, &byte, 1) == 1;
	return false;
}

/* Makes the different addresses of @g, and says of each row which is its. */
static bool find_distinct(const struct asking *a, struct group *g, struct distinct *d)
{
	const bool are_offsets = a->r->flags & FATHOM_RESOLVER_FILE_OFFSETS;
	const struct fathom_target *t = g->build->target;

	g->unique = malloc(g->n * sizeof *g->unique);
	if (!distinct_init(d, g->n) || !g->unique)
		return false;
	for (size_t i = 0; i < g->n; i++) {
		const uint32_t row = a->order[g->first + i];
		const uint8_t kind = kind_of(a, row);
		uint64_t address = a->rows->numbers[row];

		g->unique[i] = NONE;
		if (!are_offsets || stated_address(t, address, kind, &address))
			g->unique[i] = distinct_add(d, (uintptr_t)d->slots, address, kind);
	}
	return true;
}

/* Returns the reason for rows whose file could not be asked, because of @err. */
static enum fathom_reason reason_of(fathom_err err, bool is_stored)
{
	if (err == FATHOM_E_CANCELLED || err == FATHOM_E_TIMEOUT)
		return FATHOM_REASON_TIMEOUT;
	return is_stored && err == FATHOM_E_OS ? FATHOM_REASON_NO_FILE : fathom_reason_of(err);
}

/* Answers the rows of @g, whose build is open. */
static void answer_group(const struct asking *a, struct group *g)
{
	const struct fathom_symbolize_options o = { .size = sizeof o,
						    .flags = a->r->symbolize_flags };
	struct fathom_target *t = g->build->target;
	struct distinct d;
	fathom_err err;

	if (!t->stated || ((a->r->flags & FATHOM_RESOLVER_FILE_OFFSETS) && !has_offsets(t))) {
		g->reason = FATHOM_REASON_NO_FILE;
		return;
	}
	g->has_no_memory = !find_distinct(a, g, &d);
	g->n_equal = 0;
	for (size_t i = 0; !g->has_no_memory && i < g->n; i++)
		g->n_equal += g->unique[i] != NONE;
	g->n_equal -= g->has_no_memory ? 0 : d.n;
	err = g->has_no_memory
		      ? FATHOM_E_MEMORY
		      : fathom_symbolize(t, &o, d.addresses, d.kinds, d.n, &g->answers, NULL);
	if (!err)
		err = fathom_target_check(t, NULL);
	g->is_changed = err == FATHOM_E_CHANGED;
	g->has_no_memory = err == FATHOM_E_MEMORY;
	g->is_lost = err && fathom_cache_failure(t->stated);
	if (err)
		g->reason = (uint8_t)reason_of(err, g->is_lost);
	if (err && g->answers) {
		fathom_answers_free(g->answers);
		g->answers = NULL;
	}
	distinct_deinit(&d);
}

static void answer_task(void *data, size_t task, unsigned thread)
{
	struct asking *a = data;

	(void)thread;
	answer_group(a, a->turn[task]);
}

static void count(_Atomic uint64_t *counter, uint64_t more)
{
	atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

/* Returns whether the caller wants the call to go on. */
static bool goes_on(struct asking *a, size_t done)
{
	if (!a->is_cancelled &&
	    !fathom_goes_on(a->r->session, FATHOM_PHASE_ANSWER, done, a->rows->n_builds))
		a->is_cancelled = true;
	return !a->is_cancelled;
}

/* Closes the build of @g, whose file has changed, also for other groups of it. */
static void drop_build(struct asking *a, const struct group *g)
{
	struct fathom_open_build *build = g->build;

	for (size_t i = 0; i < a->n_turn; i++)
		if (a->turn[i]->build == build)
			a->turn[i]->build = NULL;
	fathom_open_builds_drop(&a->r->builds, build);
}

/* Looks the build of @g up once more, after its file has changed. */
static fathom_err open_again(struct asking *a, struct group *g, const struct fathom_build *build,
			     struct fathom_errinfo *reterr)
{
	enum fathom_reason reason;

	g->is_changed = false;
	free(g->unique);
	g->unique = NULL;
	if (g->build)
		drop_build(a, g);
	FATHOM_TRY(fathom_open_builds_find(&a->r->builds, build, &g->build, &reason, reterr));
	g->reason = (uint8_t)reason;
	if (g->build)
		answer_group(a, g);
	if (g->is_changed)
		g->reason = FATHOM_REASON_CHANGED;
	return FATHOM_OK;
}

/* Answers the groups of this turn. */
static fathom_err answer_turn(struct asking *a, struct fathom_errinfo *reterr)
{
	const unsigned threads = a->rows->n < ALONE_ROWS ? 1 : a->r->session->threads;
	const int64_t begun = fathom_now_ns();
	fathom_err err = FATHOM_OK;

	for (size_t i = 0; i < a->n_turn; i++)
		a->turn[i]->reason = FATHOM_REASON_TIMEOUT; /* of tasks that are not begun */
	fathom_run_asking(a->r->session, FATHOM_PHASE_ANSWER, threads, a->n_turn, answer_task, a);
	for (size_t i = 0; i < a->n_turn && !err; i++) {
		struct group *g = a->turn[i];

		if (g->is_changed && goes_on(a, i))
			err = open_again(a, g, &a->rows->builds[g - a->groups], reterr);
		else if (g->is_lost && g->build)
			drop_build(a, g);
		if (g->has_no_memory)
			err = fathom_fail_memory(reterr);
		count(&a->r->builds.counts.equal_rows, g->n_equal);
	}
	count(&a->r->builds.counts.answer_ns, (uint64_t)(fathom_now_ns() - begun));
	a->n_turn = 0;
	fathom_open_builds_end_turn(&a->r->builds);
	return err;
}

/* Opens the build of @g; answers the turn before if there is no room for it. */
static fathom_err open_group(struct asking *a, struct group *g, const struct fathom_build *build,
			     struct fathom_errinfo *reterr)
{
	enum fathom_reason reason = FATHOM_REASON_NONE;

	for (int i = 0; i < 2 && !g->build && !reason; i++) {
		if (i)
			FATHOM_TRY(answer_turn(a, reterr));
		FATHOM_TRY(
			fathom_open_builds_find(&a->r->builds, build, &g->build, &reason, reterr));
	}
	g->reason = (uint8_t)(g->build || reason ? reason : FATHOM_REASON_LIMIT);
	if (g->build)
		a->turn[a->n_turn++] = g;
	return FATHOM_OK;
}

/* Answers the groups whose builds are known: what is open does not wait for what is looked for. */
static fathom_err answer_known(struct asking *a, struct fathom_errinfo *reterr)
{
	for (size_t b = 0; b < a->rows->n_builds; b++) {
		struct group *g = &a->groups[b];
		enum fathom_reason reason;

		g->reason = FATHOM_REASON_TIMEOUT;
		if (!g->n)
			continue;
		g->is_known = fathom_open_builds_look(&a->r->builds, &a->rows->builds[b], &g->build,
						      &reason);
		if (g->is_known)
			g->reason = (uint8_t)reason;
		if (g->build)
			a->turn[a->n_turn++] = g;
	}
	return a->n_turn ? answer_turn(a, reterr) : FATHOM_OK;
}

/* Answers all groups. */
static fathom_err answer_groups(struct asking *a, struct fathom_errinfo *reterr)
{
	fathom_err err = answer_known(a, reterr);

	for (size_t b = 0; b < a->rows->n_builds && !err; b++) {
		struct group *g = &a->groups[b];

		if (!g->n || g->is_known || !goes_on(a, b))
			continue;
		err = open_group(a, g, &a->rows->builds[b], reterr);
		if (err == FATHOM_E_CANCELLED) {
			a->is_cancelled = true;
			g->reason = FATHOM_REASON_TIMEOUT;
			err = FATHOM_OK;
		}
	}
	return err || !a->n_turn ? err : answer_turn(a, reterr);
}

/* The result. */

/* Returns whether row @i of @g has an answer of its file. */
static bool is_answered(const struct group *g, size_t i)
{
	return g->answers && g->unique[i] != NONE;
}

static size_t count_unanswered(const struct asking *a)
{
	size_t n = 0;

	for (size_t b = 0; b < a->rows->n_builds; b++)
		for (size_t i = 0; i < a->groups[b].n; i++)
			n += !is_answered(&a->groups[b], i);
	return n;
}

/* Gives each row of @g its answer; @next is the next one of those without a file. */
static void take_answers(const struct asking *a, const struct group *g, struct fathom_answer **next)
{
	for (size_t i = 0; i < g->n; i++) {
		const uint32_t row = a->order[g->first + i];

		if (is_answered(g, i)) {
			a->result->rows[row] = fathom_answers_get(g->answers, g->unique[i]);
			continue;
		}
		**next = (struct fathom_answer){
			.pc = { .address = a->rows->numbers[row], .kind = kind_of(a, row) },
			.module_address = FATHOM_NO_ADDRESS,
			.reason = g->answers ? (uint8_t)FATHOM_REASON_UNMAPPED : g->reason,
		};
		a->result->rows[row] = (*next)++;
	}
}

/* Makes the result of the groups, whose answers it takes over. */
static fathom_err make_result(struct asking *a, struct fathom_errinfo *reterr)
{
	struct fathom_row_answers *result = a->result;
	struct fathom_answer *next;

	result->unanswered = malloc((count_unanswered(a) + 1) * sizeof *result->unanswered);
	result->rows = malloc((a->rows->n + 1) * sizeof *result->rows);
	result->parts = malloc((a->rows->n_builds + 1) * sizeof(struct fathom_answers *));
	if (!result->unanswered || !result->rows || !result->parts)
		return fathom_fail_memory(reterr);
	next = result->unanswered;
	for (size_t b = 0; b < a->rows->n_builds; b++) {
		struct group *g = &a->groups[b];

		take_answers(a, g, &next);
		if (g->answers)
			result->parts[result->n_parts++] = g->answers;
		g->answers = NULL;
	}
	return FATHOM_OK;
}

/* Returns whether all rows are of builds that are there. */
static bool are_valid(const struct fathom_rows *rows)
{
	if (rows->n > INT32_MAX || (rows->n && (!rows->row_builds || !rows->numbers)))
		return false;
	for (size_t i = 0; i < rows->n; i++)
		if (rows->row_builds[i] >= rows->n_builds)
			return false;
	return true;
}

static fathom_err ask(struct asking *a, struct fathom_errinfo *reterr)
{
	const size_t n_builds = a->rows->n_builds;
	struct fathom_call call;
	fathom_err err;

	a->order = malloc((a->rows->n + 1) * sizeof *a->order);
	a->ends = calloc(n_builds + 1, sizeof *a->ends);
	a->groups = calloc(n_builds + 1, sizeof *a->groups);
	a->turn = malloc((n_builds + 1) * sizeof(struct group *));
	a->result = calloc(1, sizeof *a->result);
	if (!a->order || !a->ends || !a->groups || !a->turn || !a->result)
		return fathom_fail_memory(reterr);
	sort_rows(a);
	/* The servers have their time in each call: resolvers live long. */
	atomic_store(&a->r->session->debuginfod_deadline_ns, 0);
	fathom_store_list_begin_call(&a->r->builds.places.stores, a->r->store_ms);
	fathom_call_begin(&call, a->r->session);
	err = answer_groups(a, reterr);
	(void)fathom_call_end(&call, FATHOM_OK, NULL);
	count(&a->r->builds.counts.rows, a->rows->n);
	return err ? err : make_result(a, reterr);
}

fathom_err fathom_resolver_answer(struct fathom_resolver *resolver, const struct fathom_rows *rows,
				  struct fathom_row_answers **ret_answers,
				  struct fathom_errinfo *reterr)
{
	struct fathom_rows copy = { .size = sizeof copy };
	struct asking a = { .r = resolver, .rows = &copy };
	fathom_err err;

	if (!FATHOM_STRUCT_READ(rows, &copy) || !are_valid(&copy))
		return fathom_fail_options(reterr);
	err = ask(&a, reterr);
	for (size_t b = 0; a.groups && b < copy.n_builds; b++) {
		fathom_answers_free(a.groups[b].answers);
		free(a.groups[b].unique);
	}
	free(a.order);
	free(a.ends);
	free(a.groups);
	free(a.turn);
	if (err)
		fathom_row_answers_free(a.result);
	else
		*ret_answers = a.result;
	return err;
}

const struct fathom_answer *const *fathom_row_answers_array(
	const struct fathom_row_answers *answers)
{
	return answers->rows;
}

void fathom_row_answers_free(struct fathom_row_answers *answers)
{
	if (!answers)
		return;
	for (size_t i = 0; i < answers->n_parts; i++)
		fathom_answers_free(answers->parts[i]);
	free(answers->parts);
	free(answers->rows);
	free(answers->unanswered);
	free(answers);
}

/* Creation. */

static fathom_err fill(struct fathom_resolver *r, const struct fathom_resolver_options *o,
		       struct fathom_errinfo *reterr)
{
	struct fathom_build_places *places = &r->builds.places;

	places->session = r->session;
	places->puts = o->flags & FATHOM_RESOLVER_STORE_PUT;
	places->needs_file = o->flags & FATHOM_RESOLVER_FILE_OFFSETS;
	r->store_ms = o->store_timeout_ms;
	if (places->puts && (!o->stores || !*o->stores))
		return fathom_fail_options(reterr);
	FATHOM_TRY(fathom_store_list_open(r->session, o->stores, &places->stores, reterr));
	FATHOM_TRY(fathom_search_paths_create(r->session, o->where, &places->paths, reterr));
	places->module_dirs = o->module_dirs ? fathom_dirs_copy(o->module_dirs) : NULL;
	if (o->module_dirs && !places->module_dirs)
		return fathom_fail_memory(reterr);
	r->flags = o->flags;
	r->symbolize_flags = o->symbolize_flags;
	return fathom_open_builds_init(&r->builds,
				       o->missing_ms ? o->missing_ms : DEFAULT_MISSING_MS, reterr);
}

fathom_err fathom_resolver_create(struct fathom *session,
				  const struct fathom_resolver_options *options,
				  struct fathom_resolver **ret_resolver,
				  struct fathom_errinfo *reterr)
{
	struct fathom_resolver_options o = { .size = sizeof o };
	struct fathom_resolver *r;
	fathom_err err;

	if (options && !FATHOM_OPTIONS_READ(options, &o, FLAGS))
		return fathom_fail_options(reterr);
	r = calloc(1, sizeof *r);
	if (!r)
		return fathom_fail_memory(reterr);
	r->session = fathom_acquire(session);
	err = fill(r, &o, reterr);
	if (err)
		fathom_resolver_destroy(r);
	else
		*ret_resolver = r;
	return err;
}

void fathom_resolver_destroy(struct fathom_resolver *resolver)
{
	if (!resolver)
		return;
	fathom_open_builds_deinit(&resolver->builds);
	fathom_destroy(resolver->session);
	free(resolver);
}

static uint64_t read_count(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

void fathom_resolver_get_counts(const struct fathom_resolver *resolver,
				struct fathom_resolver_counts *ret_counts, size_t size)
{
	const struct fathom_fleet_counts *c = &resolver->builds.counts;
	const struct fathom_resolver_counts all = {
		.rows = read_count(&c->rows),
		.equal_rows = read_count(&c->equal_rows),
		.opened = read_count(&c->opened),
		.open = read_count(&c->open),
		.evicted = read_count(&c->evicted),
		.hits = read_count(&c->hits),
		.misses = read_count(&c->misses),
		.known_missing = read_count(&c->known_missing),
		.missing = read_count(&c->missing),
		.open_ns = read_count(&c->open_ns),
		.answer_ns = read_count(&c->answer_ns),
		.store_ns = read_count(&c->store_ns),
		.decode_ns = read_count(&c->decode_ns),
		.from_stores = read_count(&c->from_stores),
		.put = read_count(&c->put),
	};

	memset(ret_counts, 0, size);
	memcpy(ret_counts, &all, size < sizeof all ? size : sizeof all);
}
