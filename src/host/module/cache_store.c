/* SPDX-License-Identifier: MIT */
/*
 * Storing an index: the blocks that an earlier run stored, those that this one has decoded and, if
 * all is wanted, the rest.
 */
#include <errno.h>
#include <stdlib.h>

#include "host/base/clock.h"
#include "host/base/progress.h"
#include "host/file/file.h"
#include "host/module/cache_key.h"
#include "host/module/cache_read.h"
#include "host/module/decode.h"
#include "host/module/index_writer.h"
#include "host/module/lines.h"
#include "host/module/module.h"
#include "host/module/unit_data.h"
#include "host/module/worker.h"
#include "safe/base/sort.h"

struct bounds {
	FATHOM_ARRAY_OF(struct fathom_index_bound);
};

struct store {
	struct fathom_module *module;
	struct fathom_debug *debug; /* NULL if there is none or it is not needed */
	struct fathom_index_writer writer;
	pthread_mutex_t lock; /* guards writer */
	struct fathom_worker *workers[FATHOM_MAX_THREADS];
	int64_t deadline_ns; /* 0: none */
	_Atomic bool late;
	_Atomic bool failed; /* some unit could not be decoded whole */
	_Atomic uint64_t n_functions;
	struct bounds bounds; /* sorted by unit, without overlap */
	bool all_bounds;      /* bounds has those of all units */
};

/* Stands for bounds that are not known. */
static const struct fathom_index_bound everywhere = { 0, 0, UINT64_MAX };

static int compare_bounds(const void *a, const void *b)
{
	const struct fathom_index_bound *x = a;
	const struct fathom_index_bound *y = b;

	if (x->unit_off != y->unit_off)
		return x->unit_off < y->unit_off ? -1 : 1;
	return x->low < y->low ? -1 : x->low > y->low;
}

static bool add_bounds(struct store *s, const struct fathom_unit_map *map)
{
	struct fathom_index_bound *to;

	if (!map || !map->n)
		return map != NULL;
	if (!fathom_array_room(&s->bounds, map->n))
		return false;
	to = s->bounds.items + s->bounds.n;
	for (size_t i = 0; i < map->n; i++)
		to[i] = (struct fathom_index_bound){ map->ranges[i].unit_off, map->ranges[i].low,
						     map->ranges[i].high };
	s->bounds.n += map->n;
	return true;
}

/*
 * Collects the bounds of the units: a unit that is not asked for an address today must not answer
 * for it from the index either. Without @w, uses the map from the units themselves only if it
 * exists.
 */
static bool find_bounds(struct store *s, struct fathom_worker *w)
{
	struct fathom_units *units = &s->debug->units;
	const struct fathom_unit_map *full =
		w ? fathom_units_full(units, w) : atomic_load(&units->full);
	struct fathom_index_bound *b;
	size_t n = 0;

	if ((w && !full) || !add_bounds(s, fathom_units_quick(units)) ||
	    (full && !add_bounds(s, full)))
		return false;
	s->all_bounds = full != NULL;
	b = s->bounds.items;
	if (s->bounds.n)
		qsort(b, s->bounds.n, sizeof *b, compare_bounds);
	for (size_t i = 0; i < s->bounds.n; i++)
		if (n && b[n - 1].unit_off == b[i].unit_off && b[n - 1].high >= b[i].low)
			b[n - 1].high = b[i].high > b[n - 1].high ? b[i].high : b[n - 1].high;
		else
			b[n++] = b[i];
	s->bounds.n = n;
	return true;
}

/* Finds the bounds of the unit at @off; returns their number. */
static size_t bounds_of(const struct store *s, uint64_t off, const struct fathom_index_bound **ret)
{
	const struct fathom_index_bound *b = s->bounds.items;
	size_t end;
	const size_t low = FATHOM_BISECT(s->bounds.n, i, b[i].unit_off < off);

	for (end = low; end < s->bounds.n && b[end].unit_off == off;)
		end++;
	*ret = b + low;
	return end - low;
}

static void write_block(struct store *s, const struct fathom_block_view *view, uint64_t unit_off,
			const struct fathom_index_bound *bounds, size_t n)
{
	fathom_index_writer_block(&s->writer, view, unit_off, bounds, n);
	if (view->block->n_nodes)
		atomic_fetch_add(&s->n_functions, 1);
}

/* Writes the blocks of @data. */
static void write_data(struct store *s, const struct fathom_unit_data *data, uint64_t unit_off)
{
	const struct fathom_index_bound *bounds;
	const size_t n = bounds_of(s, unit_off, &bounds);

	/* The missing file may be there tomorrow: do not store incomplete answers. */
	if (data->no_split || s->debug->lacks_sup) {
		atomic_store(&s->failed, true);
		return;
	}
	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < 2 * (size_t)data->n_functions + 1; i++) {
		const struct fathom_block *block =
			atomic_load_explicit(&data->blocks[i], memory_order_acquire);
		struct fathom_block_view view;

		if (!block)
			continue;
		view = fathom_block_own_view(block);
		/* The bounds of this unit are not known, but it was asked for this function. */
		if (!n && !s->all_bounds && block->n_nodes)
			write_block(s, &view, unit_off, &everywhere, 1);
		else
			write_block(s, &view, unit_off, bounds, n);
	}
	pthread_mutex_unlock(&s->lock);
}

/* Writes the blocks that this run has decoded. */
static void write_decoded(struct store *s)
{
	struct fathom_units *units = &s->debug->units;
	const size_t place = fathom_epoch_enter(&s->module->session->epochs);

	for (size_t b = 0; b < units->n_buckets; b++) {
		struct fathom_unit_node *node =
			atomic_load_explicit(&units->buckets[b], memory_order_acquire);

		for (; node; node = node->next) {
			const struct fathom_unit_data *data = atomic_load(&node->data);

			if (data)
				write_data(s, data, node->off);
		}
	}
	fathom_epoch_leave(&s->module->session->epochs, place);
}

static int compare_segments(const void *a, const void *b)
{
	const struct fathom_index_segment *x = a;
	const struct fathom_index_segment *y = b;

	if (x->block != y->block)
		return x->block < y->block ? -1 : 1;
	return x->low < y->low ? -1 : x->low > y->low;
}

/*
 * Writes the blocks that an earlier run stored, each for its segments, which need not be adjacent.
 * A block may also have rows for addresses where another block answers, or none.
 */
static bool write_stored(struct store *s, const struct fathom_index *index)
{
	const size_t most = (size_t)index->header->segments.n;
	struct fathom_index_segment *segments = malloc((most + 1) * sizeof *segments);
	struct fathom_index_bound *bounds = malloc((most + 1) * sizeof *bounds);
	const bool done = segments && bounds;
	struct fathom_block_view view;
	size_t n = 0;

	while (done && fathom_index_segment(index, n, &segments[n]))
		n++;
	if (n)
		qsort(segments, n, sizeof *segments, compare_segments);
	for (size_t i = 0; i < n; i++)
		bounds[i] = (struct fathom_index_bound){ segments[i].unit_off, segments[i].low,
							 segments[i].high };
	for (size_t first = 0, end = 0; first < n; first = end) {
		while (end < n && segments[end].block == segments[first].block)
			end++;
		if (fathom_index_find_block(index, bounds[first].low, &view))
			write_block(s, &view, bounds[first].unit_off, bounds + first, end - first);
	}
	free(segments);
	free(bounds);
	return done;
}

/* Adds a want for every slot of @data. */
static bool want_all(struct fathom_worker *w, const struct fathom_unit_data *data)
{
	w->wants.n = 0;
	for (uint32_t slot = 0; slot < 2 * data->n_functions + 1; slot++) {
		struct fathom_want want;

		fathom_unit_data_want(data, slot, &want);
		if (want.from >= want.to)
			continue;
		if (!fathom_array_push(&w->wants, want))
			return false;
	}
	/* Functions are sorted, and so is the code between them, except where they overlap. */
	return true;
}

/* Decodes all of the unit at @off and writes it. */
static fathom_err store_unit(struct store *s, struct fathom_worker *w, uint64_t off)
{
	struct fathom_memory *memory = &s->module->session->memory;
	struct fathom_unit_data *data;
	struct fathom_open_unit u;
	struct fathom_errinfo info = { 0 };
	fathom_err err;

	FATHOM_TRY(fathom_unit_data_open(w, s->debug, off, &u, &info));
	data = fathom_unit_data_create(w, s->debug, &u, true);
	err = data && want_all(w, data) ? FATHOM_OK : FATHOM_E_MEMORY;
	if (!err) {
		fathom_lines_sort_wants(w->wants.items, w->wants.n);
		err = fathom_decode(w, s->debug, &u, data, &info);
	}
	if (!err)
		err = data->err;
	fathom_unit_data_close(w, &u);
	if (data && err != FATHOM_E_MEMORY)
		write_data(s, data, off);
	fathom_unit_data_free(data, memory);
	return err;
}

static void run_unit(void *arg, size_t task, unsigned thread)
{
	struct store *s = arg;
	const struct fathom_unit_list *list = atomic_load(&s->debug->units.list);
	struct fathom_unit_header header;

	if (s->deadline_ns && fathom_now_ns() > s->deadline_ns) {
		atomic_store(&s->late, true);
		return;
	}
	if (fathom_unit_header_read(&s->debug->view, list->offs[task], &header, NULL) ||
	    header.type == DW_UT_type || header.type == DW_UT_split_type)
		return;
	fathom_file_will_read(s->debug->object->file,
			      bytes_slice(s->debug->view.section[FATHOM_DEBUG_INFO], header.off,
					  header.end_off - header.off));
	if (store_unit(s, s->workers[thread], header.off))
		atomic_store(&s->failed, true);
	fathom_file_give_back(s->debug->object->file,
			      bytes_slice(s->debug->view.section[FATHOM_DEBUG_INFO], header.off,
					  header.end_off - header.off));
}

/* Decodes and writes every unit, as far as the time allows. */
static fathom_err store_all(struct store *s)
{
	struct fathom *session = s->module->session;
	const unsigned threads =
		session->threads < FATHOM_MAX_THREADS ? session->threads : FATHOM_MAX_THREADS;
	fathom_err err = FATHOM_OK;
	uint64_t off;

	/* A look-up makes the list of units. */
	(void)fathom_units_containing(&s->debug->units, 0, &off);
	if (!atomic_load(&s->debug->units.list))
		return FATHOM_E_MEMORY;
	for (unsigned i = 0; i < threads; i++) {
		s->workers[i] = fathom_worker_acquire(session);
		if (!s->workers[i])
			err = FATHOM_E_MEMORY;
	}
	if (!err && !find_bounds(s, s->workers[0]))
		err = FATHOM_E_MEMORY;
	if (!err)
		fathom_run_asking(session, FATHOM_PHASE_STORE, threads,
				  atomic_load(&s->debug->units.list)->n, run_unit, s);
	if (!err && fathom_is_cancelled(session))
		err = FATHOM_E_CANCELLED;
	for (unsigned i = 0; i < threads; i++)
		fathom_worker_release(s->workers[i]);
	return err;
}

/* The symbols of an index that is being written. */
struct written {
	struct fathom_index_symbol *symbols;
	uint32_t *numbers; /* from numbers in memory to numbers in symbols, or FATHOM_NONE */
	uint32_t n;
};

static void add_symbol(struct store *s, struct written *w, const struct fathom_symbol_index *x,
		       uint32_t number)
{
	struct fathom_symbol_hit hit;

	fathom_symbol_index_place(x, number, &hit);
	w->numbers[number] = w->n;
	w->symbols[w->n++] = (struct fathom_index_symbol){
		hit.start, hit.size,
		fathom_index_writer_string(&s->writer, fathom_symbol_index_name(x, number)),
		hit.source
	};
}

/* Adds symbol @winner and those that start where it does. */
static void add_group(struct store *s, struct written *w, const struct fathom_symbol_index *x,
		      uint32_t winner)
{
	uint32_t group[FATHOM_INDEX_GROUP];
	const uint32_t n = fathom_symbol_index_group(x, winner, group, FATHOM_INDEX_GROUP);

	for (uint32_t i = 0; i < n; i++)
		if (w->numbers[group[i]] == FATHOM_NONE)
			add_symbol(s, w, x, group[i]);
	if (w->numbers[winner] == FATHOM_NONE)
		add_symbol(s, w, x, winner);
}

/* Writes the symbols that win somewhere, by the index that answers when nothing is stored. */
static fathom_err write_symbols(struct store *s)
{
	struct fathom_symbol_index *x = fathom_module_symbols(s->module, FATHOM_ALIAS_FATHOM);
	struct written w = { 0 };
	const uint64_t *starts;
	const uint32_t *winners;
	uint32_t *numbers;
	uint32_t n_starts;
	uint32_t n_symbols;
	fathom_err err = FATHOM_E_MEMORY;

	if (!x)
		return FATHOM_E_MEMORY;
	n_starts = fathom_symbol_index_starts(x, &starts, &winners);
	n_symbols = fathom_symbol_index_count(x) + 1u;
	w.symbols = malloc(n_symbols * sizeof *w.symbols);
	w.numbers = malloc(n_symbols * sizeof *w.numbers);
	numbers = malloc((n_starts + 1u) * sizeof *numbers);
	if (w.symbols && w.numbers && numbers) {
		memset(w.numbers, 0xff, n_symbols * sizeof *w.numbers);
		for (uint32_t i = 0; i < n_starts; i++) {
			numbers[i] = FATHOM_NONE;
			if (winners[i] == FATHOM_NONE)
				continue;
			if (w.numbers[winners[i]] == FATHOM_NONE)
				add_group(s, &w, x, winners[i]);
			numbers[i] = w.numbers[winners[i]];
		}
		fathom_index_writer_part(&s->writer, starts, n_starts, sizeof *starts,
					 &s->writer.header.symbol_starts);
		fathom_index_writer_part(&s->writer, numbers, n_starts, sizeof *numbers,
					 &s->writer.header.symbol_winners);
		fathom_index_writer_part(&s->writer, w.symbols, w.n, sizeof *w.symbols,
					 &s->writer.header.symbols);
		err = FATHOM_OK;
	}
	free(w.symbols);
	free(w.numbers);
	free(numbers);
	return err;
}

static void set_header(struct store *s)
{
	const struct fathom_bytes id = s->module->main->build_id;
	struct fathom_index_header *h = &s->writer.header;

	h->n_sources = fathom_cache_sources(s->module, h->source);
	h->content = fathom_cache_content(s->module);
	s->writer.seen = fathom_cache_identity(s->module);
	h->build_id_size = id.size <= sizeof h->build_id ? (uint32_t)id.size : 0;
	if (h->build_id_size)
		memcpy(h->build_id, id.data, h->build_id_size);
}

/* Returns whether .debug_info was decompressed: decoding all of it is cheap compared to that. */
static bool was_inflated(const struct fathom_debug *d)
{
	const uint32_t i = fathom_object_find(d->object, ".debug_info");

	return !i || fathom_object_is_compressed(d->object, i);
}

static fathom_err write_all(struct store *s, bool all)
{
	const struct fathom_index *stored = fathom_cache_index(s->module);
	enum fathom_reason reason;

	all = all || (s->debug && was_inflated(s->debug));
	if (all && !s->debug)
		s->debug = fathom_module_debug(s->module, &reason);
	/* An index without lines would be kept as complete. */
	if (fathom_is_cancelled(s->module->session))
		return FATHOM_E_CANCELLED;
	if (all && s->debug) {
		FATHOM_TRY(store_all(s));
	}
	if (!all || atomic_load(&s->late)) {
		if (s->debug && !s->bounds.n && !find_bounds(s, NULL))
			return FATHOM_E_MEMORY;
		if (s->debug)
			write_decoded(s);
		if (stored && !write_stored(s, stored))
			return FATHOM_E_MEMORY;
	}
	s->writer.header.blocks.n = s->writer.off - s->writer.header.blocks.off;
	if (all && !atomic_load(&s->late) && !atomic_load(&s->failed))
		s->writer.header.flags |= FATHOM_INDEX_COMPLETE;
	FATHOM_TRY(write_symbols(s));
	set_header(s);
	return FATHOM_OK;
}

static struct store *store_new(struct fathom_module *m, uint32_t deadline_ms)
{
	struct store *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->module = m;
	s->debug = atomic_load_explicit(&m->dwarf, memory_order_acquire);
	s->deadline_ns = deadline_ms ? fathom_now_ns() + deadline_ms * INT64_C(1000000) : 0;
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

static void store_free(struct store *s)
{
	pthread_mutex_destroy(&s->lock);
	fathom_array_free(&s->bounds);
	free(s);
}

fathom_err fathom_cache_make(struct fathom_module *m, struct fathom_bytes *ret)
{
	struct store *s = store_new(m, 0);
	fathom_err err = s ? fathom_index_writer_open(&s->writer, NULL) : FATHOM_E_MEMORY;

	if (!err)
		err = write_all(s, true);
	if (err && s)
		fathom_index_writer_abort(&s->writer);
	else if (s)
		err = fathom_index_writer_close_memory(&s->writer, ret);
	if (s)
		store_free(s);
	return err;
}

fathom_err fathom_cache_store_module(struct fathom_module *m, bool all, uint32_t deadline_ms,
				     struct fathom_cache_result *ret_result,
				     struct fathom_errinfo *reterr)
{
	const struct fathom_index *stored = fathom_cache_index(m);
	char *path = fathom_cache_path(m);
	struct fathom_cache_result result = { 0 };
	struct store *s;
	fathom_err err;

	if (!path)
		return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
				   "there is no directory for the index cache");
	if (stored && (stored->header->flags & FATHOM_INDEX_COMPLETE)) {
		result.complete = 1;
		if (ret_result)
			*ret_result = result;
		free(path);
		return FATHOM_OK;
	}
	s = store_new(m, deadline_ms);
	if (!s) {
		free(path);
		return fathom_fail_memory(reterr);
	}
	err = fathom_index_writer_open(&s->writer, path);
	if (!err)
		err = write_all(s, all);
	result.functions = atomic_load(&s->n_functions);
	result.complete = (s->writer.header.flags & FATHOM_INDEX_COMPLETE) != 0;
	/* The index would keep what was read of a file that changed meanwhile. */
	if (!err)
		err = fathom_module_check_files(m, reterr);
	if (err)
		fathom_index_writer_abort(&s->writer);
	else
		err = fathom_index_writer_close(&s->writer);
	result.file_size = s->writer.header.file_size;
	if (err == FATHOM_E_OS) {
		errno = s->writer.os_errno;
		(void)fathom_fail_write(reterr, m->session->cache_dir);
	} else if (err && err != FATHOM_E_CHANGED) {
		(void)fathom_fail(reterr, err, "", 0, fathom_err_name(err));
	} else if (!err) {
		fathom_cache_trim(m->session);
		if (ret_result)
			*ret_result = result;
	}
	store_free(s);
	free(path);
	return err;
}
