/* SPDX-License-Identifier: MIT */
/*
 * Answers a batch of addresses.
 *
 * The addresses are sorted, so that each unit, function and symbol is visited once. Addresses that
 * a stored index or a unit (batch_units.c) covers get lines; the others get only a symbol. All
 * steps run on several threads, each with its own worker (scratch) and part (tables of answers).
 */
#include <stdlib.h>

#include "host/module/cache_read.h"
#include "host/base/clock.h"
#include "host/module/module.h"
#include "host/module/variables.h"
#include "host/symbolize/batch.h"
#include "safe/base/sort.h"

/* Number of addresses answered by passes after which indexes are worth making. */
#define PASSES_WORTH_INDEX 32

/* Addresses per task without debug information. */
#define NAMES_PER_TASK 16384

/* Answers, by names, the queries that no unit answered. */
static void run_names(void *arg, size_t task, unsigned thread)
{
	struct fathom_batch *b = arg;
	const size_t first = task * NAMES_PER_TASK;
	const size_t end = first + NAMES_PER_TASK < b->n ? first + NAMES_PER_TASK : b->n;
	const struct fathom_found nothing = { 0 };

	for (size_t i = first; i < end; i++)
		if (!b->queries[i].done)
			fathom_batch_answer(b, &b->answers->parts[thread], &b->queries[i],
					    &nothing);
}

/* Answers queries from the stored index. */
static void run_stored(void *arg, size_t task, unsigned thread)
{
	struct fathom_batch *b = arg;
	struct fathom_part *p = &b->answers->parts[thread];
	const size_t first = task * NAMES_PER_TASK;
	const size_t end = first + NAMES_PER_TASK < b->n ? first + NAMES_PER_TASK : b->n;

	for (size_t i = first; i < end; i++) {
		struct fathom_query *q = &b->queries[i];
		struct fathom_found f = { 0 };

		if (!fathom_index_find_block(b->index, q->svma, &f.view))
			continue;
		f.has_row = fathom_block_find(f.view.block, q->svma, &f.row, &f.index);
		q->done = f.has_row;
		if (q->done)
			fathom_batch_answer(b, p, q, &f);
	}
	fathom_part_leave_block(p);
}

/* Returns the index of the batch's address @i, and of its answer, among all. */
static uint32_t place_of(const struct fathom_batch *b, size_t i)
{
	return b->places ? b->places[i] : (uint32_t)i;
}

/* Returns the address to look up for address @i of the batch. */
static uint64_t looked_up(const struct fathom_batch *b, size_t i)
{
	return fathom_looked_up(b->options, b->addresses, place_of(b, i)) - b->bias;
}

/* Checks the kinds of addresses: code has lines, others may be variables. */
static void look_at_kinds(struct fathom_batch *b)
{
	const bool lines = !(b->flags & FATHOM_NAMES_ONLY);
	const bool variables = b->flags & FATHOM_BATCH_VARIABLES;

	for (size_t i = 0; i < b->n; i++) {
		if ((b->any_code || !lines) && (b->any_data || !variables))
			return;
		if (fathom_object_has_code(b->module->main, looked_up(b, i)))
			b->any_code = true;
		else
			b->any_data = true;
	}
}

/* Counts the time since @start, which decides whether to store this run's work. */
static void count_cost(const struct fathom_batch *b, int64_t start)
{
	atomic_fetch_add(&b->module->cost_ns, (uint64_t)(fathom_now_ns() - start));
}

static void open_units(struct fathom_batch *b)
{
	const int64_t start = fathom_now_ns();

	fathom_batch_open_units(b);
	count_cost(b, start);
}

/* Starts the answer for address @i of the batch. */
static struct fathom_query begin_answer(const struct fathom_batch *b, size_t i)
{
	const struct fathom_object *o = b->module->main;
	const struct fathom_query q = { looked_up(b, i), place_of(b, i), false };
	struct fathom_answer *a = fathom_answers_renew(b->answers, q.index);

	*a = (struct fathom_answer){ .pc = { .address = b->addresses[q.index] },
				     .module_address = b->addresses[q.index] - b->bias,
				     .module = b->info };
	if (o->image.type == ET_REL)
		a->module_address -= o->sections[fathom_object_section_at(o, q.svma)].base;
	return q;
}

/* Lookups in flight together. */
#define GROUP 32

/* Returns whether the part has not named symbol @number yet; most symbols recur. */
static bool is_new(const struct fathom_part *p, uint32_t number)
{
	return number != FATHOM_NONE && (!p->symbol_ids || p->symbol_ids[number] == FATHOM_NONE);
}

/* Looks up the symbols of @n addresses and prefetches the memory of their answers. */
static void look_up_group(const struct fathom_batch *b, const struct fathom_part *p, size_t first,
			  size_t n, struct fathom_found found[GROUP])
{
	memset(found, 0, n * sizeof *found);
	if (!b->symbols)
		return;
	for (size_t i = 0; i < n; i++)
		fathom_symbol_index_fetch_bucket(b->symbols, looked_up(b, first + i));
	for (size_t i = 0; i < n; i++)
		fathom_symbol_index_fetch_starts(b->symbols, looked_up(b, first + i));
	for (size_t i = 0; i < n; i++) {
		found[i].has_symbol = true;
		found[i].symbol =
			fathom_symbol_index_fetch_symbol(b->symbols, looked_up(b, first + i));
		if (found[i].symbol != FATHOM_NONE && p->symbol_ids)
			__builtin_prefetch(&p->symbol_ids[found[i].symbol]);
	}
	for (size_t i = 0; i < n; i++)
		if (is_new(p, found[i].symbol))
			fathom_symbol_index_fetch_entry(b->symbols, found[i].symbol);
	for (size_t i = 0; i < n; i++)
		if (is_new(p, found[i].symbol))
			fathom_symbol_index_fetch_name(b->symbols, found[i].symbol);
}

/* Answers names only. Addresses share nothing but the index, so they are not sorted. */
static void run_plain(void *arg, size_t task, unsigned thread)
{
	struct fathom_batch *b = arg;
	const size_t first = task * NAMES_PER_TASK;
	const size_t end = first + NAMES_PER_TASK < b->n ? first + NAMES_PER_TASK : b->n;
	struct fathom_found found[GROUP];

	for (size_t i = first; i < end; i++) {
		const size_t at = (i - first) % GROUP;
		const struct fathom_query q = begin_answer(b, i);

		if (!at)
			look_up_group(b, &b->answers->parts[thread], i,
				      end - i < GROUP ? end - i : GROUP, found);
		fathom_batch_answer(b, &b->answers->parts[thread], &q, &found[at]);
	}
}

/* Returns whether address @i of the batch needs more than its name. */
static bool is_wanted(const struct fathom_batch *b, size_t i)
{
	const uint64_t svma = looked_up(b, i);

	return !(b->flags & FATHOM_NAMES_ONLY) ||
	       (fathom_object_has_code(b->module->main, svma) && fathom_batch_is_folded(b, svma));
}

/*
 * Fills in the sorted queries and their blank answers. Without lines, only addresses that several
 * functions share become queries; the others are answered by then.
 */
static fathom_err sort_queries(struct fathom_batch *b)
{
	struct fathom_keyed *keyed = malloc((2 * b->n + 1) * sizeof *keyed);
	size_t n = 0;

	if (!keyed)
		return FATHOM_E_MEMORY;
	for (size_t i = 0; i < b->n; i++) {
		if (is_wanted(b, i)) {
			const struct fathom_query q = begin_answer(b, i);

			keyed[n++] = (struct fathom_keyed){ q.svma, q.index };
		}
	}
	b->queries = malloc((n + 1) * sizeof *b->queries);
	if (!b->queries) {
		free(keyed);
		return FATHOM_E_MEMORY;
	}
	fathom_sort_keyed(keyed, keyed + n, n);
	for (size_t i = 0; i < n; i++)
		b->queries[i] =
			(struct fathom_query){ keyed[i].key, (uint32_t)keyed[i].value, false };
	b->n = n;
	free(keyed);
	return FATHOM_OK;
}

static fathom_err acquire_workers(struct fathom_batch *b)
{
	b->threads = b->module->session->threads;
	if (b->threads > FATHOM_MAX_THREADS)
		b->threads = FATHOM_MAX_THREADS;
	b->answers->n_parts = b->threads;
	for (unsigned i = 0; i < b->threads; i++) {
		b->workers[i] = fathom_worker_acquire(b->module->session);
		if (!b->workers[i])
			return FATHOM_E_MEMORY;
		fathom_part_begin(&b->answers->parts[i], i, b->flags, b->bias);
	}
	return FATHOM_OK;
}

static void prepare_symbols(struct fathom_batch *b)
{
	b->symbols = fathom_module_symbols(b->module, b->alias);
	if (!b->symbols)
		fathom_batch_fail(b, FATHOM_E_MEMORY);
}

static void prepare_queries(struct fathom_batch *b)
{
	const fathom_err err = sort_queries(b);

	if (err)
		fathom_batch_fail(b, err);
	else if (!b->index && b->any_code)
		open_units(b);
}

/* Preparation before the jobs, in two independent parts. */
struct preparation {
	struct fathom_batch *b;
	_Atomic bool named;
	bool queried;
};

/*
 * Runs one part of the preparation. The caller's thread opens files, because that may call
 * progress.
 */
static void run_preparation(void *arg, size_t task, unsigned thread)
{
	struct preparation *p = arg;

	(void)task;
	if (!thread && !p->queried) {
		p->queried = true;
		prepare_queries(p->b);
	} else if (!atomic_exchange(&p->named, true)) {
		prepare_symbols(p->b);
	}
}

static fathom_err prepare_batch(struct fathom_batch *b)
{
	const bool scan = b->few || (b->index && b->alias == FATHOM_ALIAS_FATHOM);
	const bool plain = b->flags & FATHOM_NAMES_ONLY;
	const bool many = b->n >= NAMES_PER_TASK;
	struct preparation p = { .b = b };

	b->no_lines = FATHOM_REASON_NO_DEBUG_INFO;
	FATHOM_TRY(acquire_workers(b));
	if (many && !plain && !scan)
		fathom_run_asking(b->module->session, FATHOM_PHASE_ANSWER, b->threads, 2,
				  run_preparation, &p);
	if (fathom_is_cancelled(b->module->session))
		return FATHOM_E_CANCELLED;
	if (!scan && !p.named)
		prepare_symbols(b);
	if (!plain && !p.queried)
		prepare_queries(b);
	return atomic_load(&b->err);
}

/* Finds lines and inlined calls: in the stored index, then in the debug information. */
static fathom_err run_lines(struct fathom_batch *b, size_t n_tasks)
{
	fathom_err err = FATHOM_OK;
	int64_t start;

	if (b->index) {
		fathom_run_asking(b->module->session, FATHOM_PHASE_ANSWER,
				  n_tasks > 1 ? b->threads : 1, n_tasks, run_stored, b);
		if (fathom_batch_is_done(b) || b->index->header->flags & FATHOM_INDEX_COMPLETE)
			return atomic_load(&b->err);
	}
	if (b->any_code && !b->debug)
		open_units(b);
	start = fathom_now_ns();
	if (b->debug)
		err = fathom_batch_units(b);
	count_cost(b, start);
	return err;
}

/* Reads the declarations of variables, if requested and available. */
static fathom_err prepare_variables(struct fathom_batch *b)
{
	const int64_t start = fathom_now_ns();
	enum fathom_reason reason;
	struct fathom_debug *d;

	if (!(b->flags & FATHOM_BATCH_VARIABLES) || !b->any_data)
		return FATHOM_OK;
	d = fathom_module_debug(b->module, &reason);
	if (!d)
		return FATHOM_OK;
	b->variables = fathom_variables_get(d, b->workers[0]);
	count_cost(b, start);
	return b->variables ? FATHOM_OK : FATHOM_E_MEMORY;
}

/* Counts the addresses of a small batch; returns the previous count. */
static uint32_t count_passes(const struct fathom_batch *b)
{
	_Atomic uint32_t *passes = &b->module->passes;
	const uint32_t before = atomic_load_explicit(passes, memory_order_relaxed);

	if (before < PASSES_WORTH_INDEX)
		atomic_fetch_add_explicit(passes, (uint32_t)b->n, memory_order_relaxed);
	return before;
}

/* Answers the addresses that several functions share again, now with lines. */
static fathom_err unfold(struct fathom_batch *b)
{
	size_t n_tasks;

	if (!b->module->debug && !b->index)
		return FATHOM_OK;
	FATHOM_TRY(sort_queries(b));
	if (!b->n)
		return FATHOM_OK;
	n_tasks = (b->n + NAMES_PER_TASK - 1) / NAMES_PER_TASK;
	b->any_code = true;
	FATHOM_TRY(run_lines(b, n_tasks));
	fathom_run_asking(b->module->session, FATHOM_PHASE_ANSWER, n_tasks > 1 ? b->threads : 1,
			  n_tasks, run_names, b);
	return FATHOM_OK;
}

static fathom_err run_batch(struct fathom_batch *b)
{
	const size_t n_tasks = (b->n + NAMES_PER_TASK - 1) / NAMES_PER_TASK;
	const bool plain = b->flags & FATHOM_NAMES_ONLY;

	b->index = fathom_cache_index(b->module);
	FATHOM_TRY(fathom_cache_failure(b->module));
	b->few = b->n <= FATHOM_SCAN_LIMIT && count_passes(b) < PASSES_WORTH_INDEX;
	look_at_kinds(b);
	FATHOM_TRY(prepare_batch(b));
	FATHOM_TRY(prepare_variables(b));
	if (!plain)
		FATHOM_TRY(run_lines(b, n_tasks));
	fathom_run_asking(b->module->session, FATHOM_PHASE_ANSWER, n_tasks > 1 ? b->threads : 1,
			  n_tasks, plain ? run_plain : run_names, b);
	if (plain && b->flags & FATHOM_BATCH_UNFOLD)
		FATHOM_TRY(unfold(b));
	for (unsigned i = 0; i < b->threads; i++)
		if (b->answers->parts[i].err)
			fathom_batch_fail(b, b->answers->parts[i].err);
	return atomic_load(&b->err);
}

static fathom_err answer_batch(struct fathom_batch *b)
{
	const fathom_err err = run_batch(b);

	for (unsigned i = 0; i < b->threads; i++)
		fathom_worker_release(b->workers[i]);
	free(b->queries);
	free(b->jobs);
	free(b->order);
	return err;
}

/* Discards the answers of @group: a file of the module was truncated meanwhile. */
static void forget_answers(const struct fathom_module_group *group, struct fathom_answers *answers)
{
	for (size_t i = 0; i < group->n; i++) {
		const uint32_t place = group->places ? group->places[i] : (uint32_t)i;

		*fathom_answers_renew(answers, place) = fathom_answer_without_module(
			group->addresses[place], FATHOM_REASON_CHANGED);
	}
}

fathom_err fathom_symbolize_group(const struct fathom_module_group *group,
				  const struct fathom_batch_options *options,
				  struct fathom_answers *answers)
{
	fathom_err err;
	bool damaged;

	do {
		struct fathom_batch b = { .module = group->module,
					  .answers = answers,
					  .addresses = group->addresses,
					  .places = group->places,
					  .n = group->n,
					  .bias = group->bias,
					  .info = group->info,
					  .options = options,
					  .flags = options->flags,
					  .alias = options->alias };

		err = answer_batch(&b);
		/*
		 * Damage shows when a page of the stored index is first read. Answers made before
		 * lack its data, so all are made again without the index.
		 */
		damaged = b.index && !fathom_cache_index(group->module);
	} while (damaged && !fathom_cache_failure(group->module));
	if (damaged && !err)
		err = fathom_cache_failure(group->module);
	if (!err && fathom_module_check(group->module, NULL))
		forget_answers(group, answers);
	return err;
}
