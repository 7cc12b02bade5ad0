/* SPDX-License-Identifier: MIT */
/*
 * Finds lines and inlined calls for the addresses of a batch. The addresses that a unit may cover
 * form a job; an address that the first candidate does not know goes to the next.
 */
#include <stdlib.h>

#include "host/base/array.h"
#include "host/file/file.h"
#include "host/module/decode.h"
#include "host/module/evict.h"
#include "host/module/lines.h"
#include "host/module/module.h"
#include "host/module/unit_data.h"
#include "host/symbolize/batch.h"
#include "safe/base/sort.h"
#include "safe/dwarf/names.h"

/* Least work that is worth a second thread, in bytes of .debug_info. */
#define PARALLEL_BYTES (UINT64_C(512) << 10)

/* Bytes released at a time: each release interrupts all threads. */
#define GIVE_BACK_BYTES (UINT64_C(16) << 20)

/* The queries that the unit at unit_off may cover: order[first] to order[first + n - 1]. */
struct fathom_job {
	uint64_t unit_off;
	uint32_t first;
	uint32_t n;
};

/* Reads the block of @data that holds @svma; returns false if there is none. */
static bool find_in_data(const struct fathom_unit_data *data, uint64_t svma,
			 struct fathom_found *ret)
{
	const uint32_t slot = fathom_unit_data_slot(data, svma);
	const struct fathom_block *block =
		atomic_load_explicit(&data->blocks[slot], memory_order_acquire);

	memset(ret, 0, sizeof *ret);
	if (!block)
		return false;
	ret->reason = data->no_split;
	ret->has_row = fathom_block_find(block, svma, &ret->row, &ret->index);
	if (ret->has_row && ret->row.file == FATHOM_BLOCK_NONE &&
	    ret->row.node == FATHOM_BLOCK_NONE)
		ret->has_row = false;
	if (ret->has_row)
		ret->view = fathom_block_own_view(block);
	return ret->has_row;
}

/* Adds a want for @svma in @slot, or extends the previous one. */
static bool add_want(const struct fathom_batch *b, struct fathom_worker *w,
		     const struct fathom_unit_data *data, uint64_t svma, uint32_t slot)
{
	struct fathom_want *wants = w->wants.items;
	struct fathom_want want;

	if (w->wants.n && wants[w->wants.n - 1].slot == slot) {
		if (b->flags & FATHOM_ONE_SHOT && !wants[w->wants.n - 1].folded)
			wants[w->wants.n - 1].to = svma + 1;
		return true;
	}
	fathom_unit_data_want(data, slot, &want);
	/* Only the whole code tells which of the functions it is. */
	if (b->flags & FATHOM_ONE_SHOT && !want.folded) {
		want.from = svma;
		want.to = svma + 1;
	}
	return fathom_array_push(&w->wants, want);
}

/* Merges wants of one slot: overlapping functions alternate in the addresses. */
static void join_wants(struct fathom_worker *w)
{
	struct fathom_want *wants = w->wants.items;
	size_t n = 0;

	for (size_t i = 0; i < w->wants.n; i++) {
		size_t same = n;

		while (same && wants[same - 1].slot != wants[i].slot && n - same < 16)
			same--;
		if (same && wants[same - 1].slot == wants[i].slot)
			wants[same - 1].to =
				wants[i].to > wants[same - 1].to ? wants[i].to : wants[same - 1].to;
		else
			wants[n++] = wants[i];
	}
	w->wants.n = n;
}

/* Collects as wants what the job's addresses need and @data lacks. */
static bool collect_wants(const struct fathom_batch *b, const struct fathom_job *job,
			  struct fathom_worker *w, const struct fathom_unit_data *data)
{
	w->wants.n = 0;
	for (uint32_t i = 0; i < job->n; i++) {
		const uint64_t svma = b->queries[b->order[job->first + i]].svma;
		const uint32_t slot = fathom_unit_data_slot(data, svma);

		if (!atomic_load_explicit(&data->blocks[slot], memory_order_acquire) &&
		    !add_want(b, w, data, svma, slot))
			return false;
	}
	fathom_lines_sort_wants(w->wants.items, w->wants.n);
	join_wants(w);
	return true;
}

/*
 * Replaces @expected by @data, or frees @data if another thread has published data as complete.
 * Returns the node's data.
 */
static struct fathom_unit_data *publish_data(struct fathom_batch *b, struct fathom_unit_node *node,
					     struct fathom_unit_data *expected,
					     struct fathom_unit_data *data)
{
	struct fathom_unit_data *old = expected;

	if (!data)
		return old;
	while (!atomic_compare_exchange_strong(&node->data, &expected, data)) {
		old = expected;
		if (old && (old->full || !data->full)) {
			fathom_unit_data_free(data, &b->module->session->memory);
			return old;
		}
	}
	if (old)
		fathom_evict_retire(b->module->session, old);
	return data;
}

/* Returns whether some address of the job has no function in @data. */
static bool misses_functions(const struct fathom_batch *b, const struct fathom_job *job,
			     const struct fathom_unit_data *data)
{
	for (uint32_t i = 0; i < job->n; i++)
		if (!(fathom_unit_data_slot(data, b->queries[b->order[job->first + i]].svma) & 1))
			return true;
	return false;
}

/*
 * Finds the functions of @u in the data of @node or, if nothing is kept, in private data. C units
 * are searched in full only if some address is in none of the functions found.
 */
static struct fathom_unit_data *find_functions(struct fathom_batch *b, const struct fathom_job *job,
					       struct fathom_worker *w,
					       struct fathom_unit_node *node,
					       const struct fathom_open_unit *u,
					       struct fathom_unit_data *data)
{
	const bool keep = !(b->flags & FATHOM_ONE_SHOT);

	for (int full = data ? data->full : 0; full < 2; full++) {
		struct fathom_unit_data *fresh;

		if (data && (data->full || !misses_functions(b, job, data)))
			break;
		fresh = fathom_unit_data_create(w, b->debug, u, full);
		if (keep) {
			data = publish_data(b, node, data, fresh);
		} else {
			fathom_unit_data_free(data, &b->module->session->memory);
			data = fresh;
		}
		if (!data)
			break;
	}
	return data;
}

/*
 * Returns the data of the job's unit with all blocks that its addresses need; NULL, with a note, if
 * the unit is unreadable.
 */
static struct fathom_unit_data *prepare_unit(struct fathom_batch *b, const struct fathom_job *job,
					     struct fathom_worker *w, struct fathom_unit_node *node)
{
	struct fathom_unit_data *data = NULL;
	struct fathom_open_unit u;
	struct fathom_errinfo info = { 0 };
	fathom_err err;

	if (node) {
		if (!atomic_load_explicit(&node->used, memory_order_relaxed))
			atomic_store_explicit(&node->used, 1, memory_order_relaxed);
		/* Sequentially consistent, like the eviction: see fathom_epoch_enter(). */
		data = atomic_load(&node->data);
		if (data && (data->full || !misses_functions(b, job, data)) &&
		    collect_wants(b, job, w, data) && !w->wants.n)
			return data;
	}
	err = fathom_unit_data_open(w, b->debug, job->unit_off, &u, &info);
	if (!err) {
		data = find_functions(b, job, w, node, &u, data);
		if (!data || !collect_wants(b, job, w, data))
			err = FATHOM_E_MEMORY;
		else if (w->wants.n)
			err = fathom_decode(w, b->debug, &u, data, &info);
		fathom_unit_data_close(w, &u);
	}
	if (err == FATHOM_E_MEMORY) {
		fathom_batch_fail(b, err);
	} else if (err && err != FATHOM_E_CANCELLED) {
		if (!info.file[0])
			fathom_errinfo_set_file(&info, b->debug->object->file->path);
		fathom_notes_add(b->module->notes, &info);
	}
	return data;
}

/* Returns the bytes of the unit at @off, or an empty range if its header is damaged. */
static struct fathom_bytes unit_bytes(const struct fathom_debug *d, uint64_t off)
{
	struct fathom_unit_header h;

	if (fathom_unit_header_read(&d->view, off, &h, NULL))
		return (struct fathom_bytes){ NULL, 0 };
	return bytes_slice(d->view.section[FATHOM_DEBUG_INFO], h.off, h.end_off - h.off);
}

/*
 * Releases the pages before @off once they are @least bytes. Jobs come in the order of units; pages
 * that another thread still reads are faulted in again.
 */
static void give_back(struct fathom_batch *b, uint64_t off, uint64_t least)
{
	uint64_t from = atomic_load_explicit(&b->given_back, memory_order_relaxed);

	if (b->many && off > from && off - from >= least &&
	    atomic_compare_exchange_strong(&b->given_back, &from, off))
		fathom_file_give_back(
			b->debug->object->file,
			bytes_slice(b->debug->view.section[FATHOM_DEBUG_INFO], from, off - from));
}

/* Prefetch distance in queries: their answers are scattered. */
#define FETCH_AHEAD 8

static void fetch_answer(const struct fathom_batch *b, const struct fathom_job *job, uint32_t i)
{
	if (i < job->n)
		__builtin_prefetch(&b->answers->answers[b->queries[b->order[job->first + i]].index],
				   1);
}

static void run_job(struct fathom_batch *b, const struct fathom_job *job, unsigned thread)
{
	struct fathom_worker *w = b->workers[thread];
	struct fathom_part *p = &b->answers->parts[thread];
	struct fathom *session = b->module->session;
	const struct fathom_bytes bytes = unit_bytes(b->debug, job->unit_off);
	const size_t place = fathom_epoch_enter(&session->epochs);
	const bool keep = !(b->flags & FATHOM_ONE_SHOT);
	struct fathom_unit_node *node =
		keep ? fathom_units_node(&b->debug->units, job->unit_off) : NULL;
	struct fathom_unit_data *data = NULL;

	fathom_file_will_read(b->debug->object->file, bytes);
	if (keep && !node)
		fathom_batch_fail(b, FATHOM_E_MEMORY);
	else
		data = prepare_unit(b, job, w, node);
	for (uint32_t i = 0; data && i < job->n; i++) {
		struct fathom_query *q = &b->queries[b->order[job->first + i]];
		struct fathom_found f;

		fetch_answer(b, job, i + FETCH_AHEAD);
		q->done = find_in_data(data, q->svma, &f);
		if (q->done)
			fathom_batch_answer(b, p, q, &f);
	}
	fathom_part_leave_block(p);
	if (!keep)
		fathom_unit_data_free(data, &session->memory);
	fathom_epoch_leave(&session->epochs, place);
	give_back(b, job->unit_off, GIVE_BACK_BYTES);
	fathom_evict(session);
}

/*
 * Runs one job. Task 0 makes the full map if the batch wants it; a failure shows when the map is
 * used.
 */
static void run_task(void *arg, size_t task, unsigned thread)
{
	struct fathom_batch *b = arg;

	if (!b->wants_full)
		run_job(b, &b->jobs[task], thread);
	else if (task)
		run_job(b, &b->jobs[task - 1], thread);
	else
		(void)fathom_units_full(&b->debug->units, b->workers[thread]);
}

/* A unit that may cover a query. */
struct candidate {
	uint64_t unit_off;
	uint32_t query;
};

struct candidates {
	FATHOM_ARRAY_OF(struct candidate);
};

/* Groups @candidates by unit into the batch's jobs, in the order of units. */
static bool make_jobs(struct fathom_batch *b, const struct candidates *candidates)
{
	const struct candidate *c = candidates->items;
	const size_t n = candidates->n;
	struct fathom_keyed *keyed = malloc((2 * n + 1) * sizeof *keyed);

	free(b->jobs);
	free(b->order);
	b->jobs = malloc((n + 1) * sizeof *b->jobs);
	b->order = malloc((n + 1) * sizeof *b->order);
	b->n_jobs = 0;
	if (!keyed || !b->jobs || !b->order) {
		free(keyed);
		return false;
	}
	for (size_t i = 0; i < n; i++)
		keyed[i] = (struct fathom_keyed){ c[i].unit_off, c[i].query };
	fathom_sort_keyed(keyed, keyed + n, n);
	for (size_t i = 0; i < n; i++) {
		b->order[i] = (uint32_t)keyed[i].value;
		if (!i || keyed[i].key != keyed[i - 1].key)
			b->jobs[b->n_jobs++] = (struct fathom_job){ keyed[i].key, (uint32_t)i, 0 };
		b->jobs[b->n_jobs - 1].n++;
	}
	free(keyed);
	return true;
}

static bool add_candidate(struct candidates *a, uint64_t unit_off, size_t query)
{
	return fathom_array_push(a, (struct candidate){ unit_off, (uint32_t)query });
}

/*
 * Makes the jobs for the candidates with rank @rank for their address, from @map (NULL: from a pass
 * over the indexes).
 */
static bool plan_rank(struct fathom_batch *b, const struct fathom_unit_map *map, unsigned rank)
{
	struct candidates candidates = { 0 };
	bool done = true;

	b->wants_full = false;
	for (size_t i = 0; done && i < b->n; i++) {
		uint64_t offs[FATHOM_UNIT_CANDIDATES];
		size_t n;

		if (b->queries[i].done)
			continue;
		n = map ? fathom_unit_candidates(map, b->queries[i].svma, offs)
			: fathom_units_scan(&b->debug->units, b->queries[i].svma, offs);
		b->wants_full |= !n;
		if (n > rank)
			done = add_candidate(&candidates, offs[rank], i);
	}
	done = done && make_jobs(b, &candidates);
	fathom_array_free(&candidates);
	return done;
}

/* Returns the map from indexes; NULL if a pass over the indexes suffices, or without memory. */
static const struct fathom_unit_map *quick_map(const struct fathom_batch *b)
{
	return b->few ? atomic_load_explicit(&b->debug->units.quick, memory_order_acquire)
		      : fathom_units_quick(&b->debug->units);
}

void fathom_batch_open_units(struct fathom_batch *b)
{
	const struct fathom_unit_map *quick;

	/* The tools that the other rules are of do not read Go's own table. */
	if (b->module->has_go_table && b->alias != FATHOM_ALIAS_FATHOM) {
		b->no_lines = b->module->no_debug;
		return;
	}
	b->debug = fathom_module_debug(b->module, &b->no_lines);
	quick = b->debug ? quick_map(b) : NULL;
	if (b->debug && (quick ? quick->n : b->few))
		b->planned = plan_rank(b, quick, 0);
}

/* Runs the jobs of @rank; sets *@ret_any if there were any. */
static fathom_err run_rank(struct fathom_batch *b, const struct fathom_unit_map *map, unsigned rank,
			   bool *ret_any)
{
	uint64_t bytes = 0;

	if (!b->planned && !plan_rank(b, map, rank))
		return FATHOM_E_MEMORY;
	b->planned = false;
	*ret_any = b->n_jobs != 0;
	for (size_t i = 0; i < b->n_jobs && bytes < PARALLEL_BYTES; i++)
		bytes += unit_bytes(b->debug, b->jobs[i].unit_off).size;
	b->many = bytes >= PARALLEL_BYTES;
	atomic_store(&b->given_back, b->n_jobs ? b->jobs[0].unit_off : 0);
	/* One thread gains nothing. */
	b->wants_full = b->wants_full && b->many && b->threads > 1;
	fathom_run_asking(b->module->session, FATHOM_PHASE_ANSWER, b->many ? b->threads : 1,
			  b->n_jobs + b->wants_full, run_task, b);
	give_back(b, b->debug->view.section[FATHOM_DEBUG_INFO].size, 1);
	return atomic_load(&b->err);
}

/* Tries all candidates of plan_rank(), the likeliest first. */
static fathom_err run_map(struct fathom_batch *b, const struct fathom_unit_map *map)
{
	bool any = !map || map->n;

	for (unsigned rank = 0; any && rank < FATHOM_UNIT_CANDIDATES; rank++)
		FATHOM_TRY(run_rank(b, map, rank, &any));
	return FATHOM_OK;
}

/* Finds units through the name index, from the symbol, if there is no index by address. */
static fathom_err run_by_names(struct fathom_batch *b)
{
	struct candidates candidates = { 0 };
	bool done = true;

	for (size_t i = 0; done && i < b->n; i++) {
		struct fathom_symbol_hit hit;
		struct fathom_names_search s;
		uint64_t off;

		if (b->queries[i].done ||
		    !fathom_symbols_scan(&b->module->symbols, b->queries[i].svma, NULL, &hit))
			continue;
		fathom_names_init(&s, &b->debug->view, hit.name);
		if (fathom_names_next(&s, &off, NULL) == FATHOM_OK)
			done = add_candidate(&candidates, off, i);
	}
	done = done && make_jobs(b, &candidates);
	fathom_array_free(&candidates);
	if (!done)
		return FATHOM_E_MEMORY;
	b->wants_full = false;
	fathom_run_asking(b->module->session, FATHOM_PHASE_ANSWER, 1, b->n_jobs, run_task, b);
	return atomic_load(&b->err);
}

fathom_err fathom_batch_units(struct fathom_batch *b)
{
	const struct fathom_dwarf *view = &b->debug->view;
	const struct fathom_unit_map *quick = quick_map(b);
	const struct fathom_unit_map *full;

	if (!quick && !b->few)
		return FATHOM_E_MEMORY;
	FATHOM_TRY(run_map(b, quick));
	if (fathom_is_cancelled(b->module->session))
		return FATHOM_E_CANCELLED;
	/* The name index is only loaded if there is no index by address. */
	if (b->few && view->section[FATHOM_DEBUG_NAMES].size && !atomic_load(&b->debug->units.full))
		FATHOM_TRY(run_by_names(b));
	if (fathom_batch_is_done(b))
		return FATHOM_OK;
	full = fathom_units_full(&b->debug->units, b->workers[0]);
	return full ? run_map(b, full) : FATHOM_E_MEMORY;
}
