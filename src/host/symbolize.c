/* SPDX-License-Identifier: MIT */
/*
 * Answering a batch of addresses.
 *
 * The addresses are sorted, so that each unit, each function and each symbol is looked at once.
 * Those that a unit may cover form a job; jobs run on several threads, each with a worker (scratch)
 * and a part (tables of answers) of its own. An address for which the first candidate knows nothing
 * goes to the next; what no unit knows gets its symbol only.
 */
#include <stdlib.h>

#include "../safe/base/sort.h"
#include "../safe/dwarf/names.h"
#include "answers.h"
#include "cache.h"
#include "decode.h"
#include "evict.h"
#include "file.h"
#include "lines.h"
#include "plt.h"
#include "pool.h"
#include "symbols_gnu.h"
#include "symbols_llvm.h"
#include "target.h"
#include "unit_data.h"
#include "variables.h"

/* Up to this many addresses are looked up by a pass over the symbols, without an index. */
#define SCAN_LIMIT 4

/* After so many passes an index is worth making: there will be more. */
#define SCANS_WORTH_INDEX 32

/* Addresses without debug information are answered in tasks of this many. */
#define NAMES_PER_TASK 16384

/* Work that is worth a second thread, in bytes of .debug_info. */
#define PARALLEL_BYTES (UINT64_C(512) << 10)

/* What was read is given back in stretches of this many bytes: each time costs all threads. */
#define GIVE_BACK_BYTES (UINT64_C(16) << 20)

/* The state of one address while it is being answered, in sorted order. */
struct query {
	uint64_t svma;  /* looked up: one less for return addresses */
	uint32_t index; /* in the batch */
	bool done;      /* a unit knew it */
};

/* The addresses that unit_off may cover: queries of order[first] to order[first + n - 1]. */
struct job {
	uint64_t unit_off;
	uint32_t first;
	uint32_t n;
};

struct batch {
	struct fathom_module *module;
	struct fathom_debug *debug; /* NULL: names only */
	struct fathom_answers *answers;
	const uint64_t *addresses;
	struct query *queries; /* sorted by svma; NULL: names only */
	size_t n;
	uint32_t flags;
	enum fathom_alias alias;
	enum fathom_reason no_lines;              /* why an address without a line has none */
	const struct fathom_variables *variables; /* NULL: not asked for, or there are none */
	const struct fathom_index *index;         /* of an earlier run, or NULL */
	struct fathom_symbol_index *symbols;      /* NULL: from the index, or scan */
	struct fathom_worker *workers[FATHOM_MAX_THREADS];
	struct job *jobs;
	uint32_t *order;
	size_t n_jobs;
	bool planned;    /* the jobs of the first rank are made */
	bool wants_full; /* the map of all units will be needed: made beside the jobs */
	unsigned threads;
	bool any_code;
	bool any_data;
	bool many;                   /* worth giving pages back */
	_Atomic uint64_t given_back; /* the end of what was, in .debug_info */
	_Atomic int32_t err;
};

static void fail(struct batch *b, fathom_err err)
{
	int32_t none = FATHOM_OK;

	(void)atomic_compare_exchange_strong(&b->err, &none, err);
}

/* Where the part remembers the id of symbol @number of @count; NULL, and a failure, without memory.
 */
static uint32_t *symbol_id(struct fathom_part *p, uint32_t number, uint64_t count)
{
	if (!p->symbol_ids) {
		p->symbol_ids = malloc(count * sizeof *p->symbol_ids);
		if (!p->symbol_ids) {
			p->err = FATHOM_E_MEMORY;
			return NULL;
		}
		memset(p->symbol_ids, 0xff, count * sizeof *p->symbol_ids);
	}
	return &p->symbol_ids[number];
}

/* The symbol at @svma by the index that this run has built. */
static bool find_in_tables(const struct batch *b, struct fathom_part *p, uint64_t svma,
			   struct fathom_symbol_hit *hit, uint32_t *ret_id)
{
	const uint32_t number = fathom_symbol_index_at(b->symbols, svma);
	uint32_t *id;

	if (number == FATHOM_NONE)
		return false;
	fathom_symbol_index_place(b->symbols, number, hit);
	hit->file = fathom_symbol_index_file(b->symbols, number);
	id = symbol_id(p, number, fathom_symbol_index_count(b->symbols));
	if (id && *id == FATHOM_NONE) {
		hit->name = fathom_symbol_index_name(b->symbols, number);
		*id = fathom_part_symbol(p, hit);
	}
	*ret_id = id ? *id : FATHOM_NONE;
	return true;
}

/* The symbol at @svma by the index that an earlier run has stored. */
static bool find_in_index(const struct batch *b, struct fathom_part *p, uint64_t svma,
			  struct fathom_symbol_hit *hit, uint32_t *ret_id)
{
	struct fathom_index_symbol symbol;
	uint32_t number;
	uint32_t own = FATHOM_NONE;
	uint32_t *id = &own;

	if (!fathom_index_find_symbol(b->index, svma, &number) ||
	    !fathom_index_symbol(b->index, number, &symbol))
		return false;
	*hit = (struct fathom_symbol_hit){ .start = symbol.start,
					   .size = symbol.size,
					   .source = (uint8_t)symbol.source };
	if (b->n > SCAN_LIMIT)
		id = symbol_id(p, number, b->index->header->symbols.n);
	if (id && *id == FATHOM_NONE) {
		hit->name = fathom_index_string(b->index, symbol.name);
		*id = fathom_part_symbol(p, hit);
	}
	*ret_id = id ? *id : FATHOM_NONE;
	return true;
}

/* The symbol at @svma without an index. */
static bool scan_tables(const struct batch *b, uint64_t svma, struct fathom_symbol_hit *hit)
{
	const struct fathom_symbol_set *set = &b->module->symbols;

	atomic_fetch_add_explicit(&b->module->scans, 1, memory_order_relaxed);
	switch (b->alias) {
	case FATHOM_ALIAS_GNU:
		return fathom_gnu_scan(set, svma, hit);
	case FATHOM_ALIAS_LLVM:
		return fathom_llvm_scan(set, svma, hit);
	default:
		return fathom_symbols_scan(set, svma, hit);
	}
}

/* Whether the module's tables hold a symbol for @svma. */
static bool find_symbol(const struct batch *b, struct fathom_part *p, uint64_t svma,
			struct fathom_symbol_hit *hit, uint32_t *ret_id)
{
	if (b->symbols)
		return find_in_tables(b, p, svma, hit, ret_id);
	if (b->index && b->alias == FATHOM_ALIAS_FATHOM) {
		if (find_in_index(b, p, svma, hit, ret_id))
			return true;
		if (!fathom_index_is_damaged(b->index))
			return false;
	}
	if (!scan_tables(b, svma, hit))
		return false;
	*ret_id = fathom_part_symbol(p, hit);
	return true;
}

/* Notes the symbol in the answer. */
static void set_symbol(struct fathom_answer *a, const struct fathom_symbol_hit *hit, uint32_t id,
		       uint64_t svma)
{
	a->symbol = id;
	a->source = hit->source;
	a->size = hit->size;
	a->offset = svma - hit->start;
	/* Of a return address that was looked up as the byte before it. */
	a->offset += a->address - svma;
}

/* A block with the answer for @svma; block is NULL when nothing is known of its lines. */
struct found {
	struct fathom_block_view view;
	struct fathom_block_row row;
	uint32_t index;
	enum fathom_reason reason; /* why calls may be missing beside the line */
	bool has_row;
};

/* A name by what is left when no table has one. */
static void set_fallback_symbol(const struct batch *b, struct fathom_part *p,
				struct fathom_answer *a, uint64_t svma)
{
	struct fathom_symbol_hit hit;

	if (b->alias != FATHOM_ALIAS_FATHOM)
		return;
	if (fathom_plt_at(&b->module->symbols, svma, &hit) ||
	    (fathom_object_has_code(b->module->main, svma) &&
	     fathom_symbols_fde(&b->module->symbols, svma, &hit)))
		set_symbol(a, &hit, fathom_part_symbol(p, &hit), svma);
}

/* Names the answer after the function of the block itself. */
static void set_dwarf_symbol(struct fathom_part *p, struct fathom_answer *a, const struct found *f,
			     uint64_t svma)
{
	const uint32_t id = fathom_part_physical(p, f->view);
	const struct fathom_symbol_hit hit = { .start = f->view.block->low,
					       .size = f->view.block->size,
					       .source = FATHOM_SOURCE_DWARF };

	if (id != FATHOM_NONE)
		set_symbol(a, &hit, id, svma);
}

/* Whether the function of the block is nearer to the truth than the symbol. */
static bool dwarf_names_better(const struct batch *b, const struct found *f,
			       const struct fathom_symbol_hit *hit)
{
	return b->alias == FATHOM_ALIAS_FATHOM && f->view.block && f->view.block->n_nodes &&
	       !hit->size && f->view.block->low > hit->start;
}

/* Whether the answer can do without the symbol: GNU takes the linker's name from the DWARF. */
static bool is_named_as_linked(const struct batch *b, const struct found *f)
{
	struct fathom_block_function function;
	struct fathom_block_node node;

	return b->alias == FATHOM_ALIAS_GNU && (b->flags & FATHOM_DWARF_NAMES) && f->view.block &&
	       fathom_block_node(f->view.block, f->row.node, &node) &&
	       fathom_block_function(f->view.block, node.function, &function) &&
	       (function.linkage || (function.name && function.flags & FATHOM_BLOCK_UNMANGLED));
}

/* Why this answer has no line, or no name. */
static enum fathom_reason reason_for(const struct batch *b, const struct fathom_answer *a,
				     const struct found *f, uint64_t svma)
{
	const bool has_line = f->has_row && f->row.file != FATHOM_BLOCK_NONE;

	if (a->symbol == FATHOM_NONE && !fathom_object_is_mapped(b->module->main, svma))
		return FATHOM_REASON_UNMAPPED;
	if (f->view.block && (f->view.block->flags & FATHOM_BLOCK_DAMAGED))
		return FATHOM_REASON_CORRUPT;
	if (f->reason)
		return f->reason;
	if (a->symbol == FATHOM_NONE && (b->flags & FATHOM_NAMES_ONLY || has_line ||
					 b->no_lines == FATHOM_REASON_NO_DEBUG_INFO))
		return FATHOM_REASON_NO_SYMBOLS;
	if (has_line || (b->flags & FATHOM_NAMES_ONLY))
		return FATHOM_REASON_NONE;
	return b->no_lines;
}

/* Says where the variable at @svma, or the one that the answer names, is declared. */
static void set_variable(const struct batch *b, struct fathom_part *p, struct fathom_answer *a,
			 uint64_t svma)
{
	const bool gnu = b->alias == FATHOM_ALIAS_GNU;
	struct fathom_str path;
	uint32_t line;

	if (!b->variables || a->frame != FATHOM_NONE || (!gnu && a->symbol == FATHOM_NONE) ||
	    !fathom_variables_find(b->variables, b->workers[p->number],
				   gnu ? svma : a->address - a->offset, gnu, &path, &line))
		return;
	a->frame = fathom_part_place(p, a->symbol, path, line);
	a->symbol_file = FATHOM_NONE;
	a->reason = FATHOM_REASON_NONE;
}

/* The symbol @id as the language that the debug information states wants it demangled. */
static uint32_t in_language(const struct batch *b, struct fathom_part *p, const struct found *f,
			    uint32_t id)
{
	if (id == FATHOM_NONE || !f->view.block || b->alias != FATHOM_ALIAS_FATHOM)
		return id;
	return fathom_part_ada_symbol(p, f->view, id);
}

/* Completes the answer of @q from what was found about it. */
static void answer(struct batch *b, struct fathom_part *p, const struct query *q,
		   const struct found *f)
{
	struct fathom_answer *a = &b->answers->answers[q->index];
	struct fathom_symbol_hit hit = { 0 };
	uint32_t id = FATHOM_NONE;

	if (!is_named_as_linked(b, f) && find_symbol(b, p, q->svma, &hit, &id) &&
	    !dwarf_names_better(b, f, &hit))
		set_symbol(a, &hit, in_language(b, p, f, id), q->svma);
	else if (f->view.block && f->view.block->n_nodes)
		set_dwarf_symbol(p, a, f, q->svma);
	if (a->symbol == FATHOM_NONE)
		set_fallback_symbol(b, p, a, q->svma);
	if (f->has_row)
		a->frame = fathom_part_frame(p, f->view, &f->row, f->index, a->symbol);
	if (!f->has_row || f->row.file == FATHOM_BLOCK_NONE)
		a->symbol_file = fathom_part_file(p, hit.file);
	a->reason = (uint8_t)reason_for(b, a, f, q->svma);
	set_variable(b, p, a, q->svma);
}

/* Reads the block of @data that holds @svma; false when nothing is known there. */
static bool find_in_data(const struct fathom_unit_data *data, uint64_t svma, struct found *ret)
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

static int compare_wants(const void *a, const void *b)
{
	const struct fathom_want *x = a;
	const struct fathom_want *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/* Adds the want for @svma in @slot, or makes the one before include it. */
static bool add_want(const struct batch *b, struct fathom_worker *w,
		     const struct fathom_unit_data *data, uint64_t svma, uint32_t slot)
{
	struct fathom_want *wants = w->wants.data;
	struct fathom_want want = { .slot = slot, .from = svma, .to = svma + 1 };

	if (w->wants.n && wants[w->wants.n - 1].slot == slot) {
		if (b->flags & FATHOM_ONE_SHOT)
			wants[w->wants.n - 1].to = svma + 1;
		return true;
	}
	if (!fathom_array_reserve(&w->wants, sizeof want, 1))
		return false;
	fathom_unit_data_range(data, slot, &want.low, &want.high, &want.die_off);
	if (!(b->flags & FATHOM_ONE_SHOT)) {
		want.from = want.low;
		want.to = want.high;
	}
	((struct fathom_want *)w->wants.data)[w->wants.n++] = want;
	return true;
}

/* Joins wants of one slot: functions that overlap take turns at the addresses. */
static void join_wants(struct fathom_worker *w)
{
	struct fathom_want *wants = w->wants.data;
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

/* Collects in the worker's wants what the job's addresses need and @data does not hold yet. */
static bool collect_wants(const struct batch *b, const struct job *job, struct fathom_worker *w,
			  const struct fathom_unit_data *data)
{
	w->wants.n = 0;
	for (uint32_t i = 0; i < job->n; i++) {
		const uint64_t svma = b->queries[b->order[job->first + i]].svma;
		const uint32_t slot = fathom_unit_data_slot(data, svma);

		if (!atomic_load_explicit(&data->blocks[slot], memory_order_acquire) &&
		    !add_want(b, w, data, svma, slot))
			return false;
	}
	if (w->wants.n > 1)
		qsort(w->wants.data, w->wants.n, sizeof(struct fathom_want), compare_wants);
	join_wants(w);
	return true;
}

/*
 * Puts @data in the place of @expected, unless another thread has put something as complete there:
 * then @data is freed. Returns what the node holds.
 */
static struct fathom_unit_data *publish_data(struct batch *b, struct fathom_unit_node *node,
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

/* Whether some address of the job has no function in @data. */
static bool misses_functions(const struct batch *b, const struct job *job,
			     const struct fathom_unit_data *data)
{
	for (uint32_t i = 0; i < job->n; i++)
		if (!(fathom_unit_data_slot(data, b->queries[b->order[job->first + i]].svma) & 1))
			return true;
	return false;
}

/*
 * Finds the functions of @u: in what @node holds, or, when nothing is to be kept, in data of our
 * own. C units are searched in full only if some address is in none of the functions found.
 */
static struct fathom_unit_data *find_functions(struct batch *b, const struct job *job,
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
 * The data of the job's unit with all blocks that its addresses need. NULL when the unit cannot be
 * read, which is noted.
 */
static struct fathom_unit_data *prepare_unit(struct batch *b, const struct job *job,
					     struct fathom_worker *w, struct fathom_unit_node *node)
{
	struct fathom_unit_data *data = NULL;
	struct fathom_open_unit u;
	struct fathom_errinfo info = { 0 };
	fathom_err err;

	if (node) {
		if (!atomic_load_explicit(&node->used, memory_order_relaxed))
			atomic_store_explicit(&node->used, 1, memory_order_relaxed);
		/* Sequentially consistent, as what evicts is: see fathom_epoch_enter(). */
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
		fail(b, err);
	} else if (err) {
		if (!info.file[0])
			fathom_errinfo_set_file(&info, b->debug->object->file->path);
		fathom_notes_add(&b->module->notes, &info);
	}
	return data;
}

/* The bytes of the unit at @off, or an empty range when its header is damaged. */
static struct fathom_bytes unit_bytes(const struct fathom_debug *d, uint64_t off)
{
	struct fathom_unit_header h;

	if (fathom_unit_header_read(&d->view, off, &h, NULL))
		return (struct fathom_bytes){ NULL, 0 };
	return bytes_slice(d->view.section[FATHOM_DEBUG_INFO], h.off, h.end_off - h.off);
}

/*
 * Gives back what was read before @off, once that is @least bytes. Jobs come in the order of units;
 * what another thread is still reading there, it gets again.
 */
static void give_back(struct batch *b, uint64_t off, uint64_t least)
{
	uint64_t from = atomic_load_explicit(&b->given_back, memory_order_relaxed);

	if (b->many && off > from && off - from >= least &&
	    atomic_compare_exchange_strong(&b->given_back, &from, off))
		fathom_file_give_back(
			b->debug->object->file,
			bytes_slice(b->debug->view.section[FATHOM_DEBUG_INFO], from, off - from));
}

static void run_job(struct batch *b, const struct job *job, unsigned thread)
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
		fail(b, FATHOM_E_MEMORY);
	else
		data = prepare_unit(b, job, w, node);
	for (uint32_t i = 0; data && i < job->n; i++) {
		struct query *q = &b->queries[b->order[job->first + i]];
		struct found f;

		q->done = find_in_data(data, q->svma, &f);
		if (q->done)
			answer(b, p, q, &f);
	}
	fathom_part_leave_block(p);
	if (!keep)
		fathom_unit_data_free(data, &session->memory);
	fathom_epoch_leave(&session->epochs, place);
	give_back(b, job->unit_off, GIVE_BACK_BYTES);
	fathom_evict(session);
}

/* Task 0 of a batch that wants the full map is to make it; a failure shows when it is asked for. */
static void run_task(void *arg, size_t task, unsigned thread)
{
	struct batch *b = arg;

	if (!b->wants_full)
		run_job(b, &b->jobs[task], thread);
	else if (task)
		run_job(b, &b->jobs[task - 1], thread);
	else
		(void)fathom_units_full(&b->debug->units, b->workers[thread]);
}

/* Answers what no unit knew, by names. */
static void run_names(void *arg, size_t task, unsigned thread)
{
	struct batch *b = arg;
	const size_t first = task * NAMES_PER_TASK;
	const size_t end = first + NAMES_PER_TASK < b->n ? first + NAMES_PER_TASK : b->n;
	const struct found nothing = { 0 };

	for (size_t i = first; i < end; i++)
		if (!b->queries[i].done)
			answer(b, &b->answers->parts[thread], &b->queries[i], &nothing);
}

/* Answers what an earlier run has stored. */
static void run_stored(void *arg, size_t task, unsigned thread)
{
	struct batch *b = arg;
	struct fathom_part *p = &b->answers->parts[thread];
	const size_t first = task * NAMES_PER_TASK;
	const size_t end = first + NAMES_PER_TASK < b->n ? first + NAMES_PER_TASK : b->n;

	for (size_t i = first; i < end; i++) {
		struct query *q = &b->queries[i];
		struct found f = { 0 };

		if (!fathom_index_find_block(b->index, q->svma, &f.view))
			continue;
		f.has_row = fathom_block_find(f.view.block, q->svma, &f.row, &f.index);
		q->done = f.has_row;
		if (q->done)
			answer(b, p, q, &f);
	}
	fathom_part_leave_block(p);
}

/* A unit that may cover a query. */
struct candidate {
	uint64_t unit_off;
	uint32_t query;
};

/* Groups @candidates by unit, in the units' order, into the batch's jobs. */
static bool make_jobs(struct batch *b, const struct fathom_array *candidates)
{
	const struct candidate *c = candidates->data;
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
			b->jobs[b->n_jobs++] = (struct job){ keyed[i].key, (uint32_t)i, 0 };
		b->jobs[b->n_jobs - 1].n++;
	}
	free(keyed);
	return true;
}

static bool add_candidate(struct fathom_array *a, uint64_t unit_off, size_t query)
{
	if (!fathom_array_reserve(a, sizeof(struct candidate), 1))
		return false;
	((struct candidate *)a->data)[a->n++] = (struct candidate){ unit_off, (uint32_t)query };
	return true;
}

/* Makes the jobs for the candidates of @map that come at place @rank for their address. */
static bool plan_rank(struct batch *b, const struct fathom_unit_map *map, unsigned rank)
{
	struct fathom_array candidates = { 0 };
	bool done = true;

	b->wants_full = false;
	for (size_t i = 0; done && i < b->n; i++) {
		uint64_t offs[FATHOM_UNIT_CANDIDATES];
		size_t n;

		if (b->queries[i].done)
			continue;
		n = fathom_unit_candidates(map, b->queries[i].svma, offs);
		b->wants_full |= !n;
		if (n > rank)
			done = add_candidate(&candidates, offs[rank], i);
	}
	done = done && make_jobs(b, &candidates);
	fathom_array_deinit(&candidates);
	return done;
}

/* Runs the jobs of @rank; *@ret_any says whether there were any. */
static fathom_err run_rank(struct batch *b, const struct fathom_unit_map *map, unsigned rank,
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
	/* On one thread there is nothing to win. */
	b->wants_full = b->wants_full && b->many && b->threads > 1;
	fathom_pool_run(b->many ? b->threads : 1, b->n_jobs + b->wants_full, run_task, b);
	give_back(b, b->debug->view.section[FATHOM_DEBUG_INFO].size, 1);
	return atomic_load(&b->err);
}

/* Tries all candidates of @map, the likeliest first. */
static fathom_err run_map(struct batch *b, const struct fathom_unit_map *map)
{
	bool any = map && map->n;

	for (unsigned rank = 0; any && rank < FATHOM_UNIT_CANDIDATES; rank++)
		FATHOM_TRY(run_rank(b, map, rank, &any));
	return FATHOM_OK;
}

static bool all_done(const struct batch *b)
{
	for (size_t i = 0; i < b->n; i++)
		if (!b->queries[i].done)
			return false;
	return true;
}

/* Where there is no index by address: the name index leads from the symbol to the unit. */
static fathom_err run_by_names(struct batch *b)
{
	struct fathom_array candidates = { 0 };
	bool done = true;

	for (size_t i = 0; done && i < b->n; i++) {
		struct fathom_symbol_hit hit;
		struct fathom_names_search s;
		uint64_t off;

		if (b->queries[i].done ||
		    !fathom_symbols_scan(&b->module->symbols, b->queries[i].svma, &hit))
			continue;
		fathom_names_init(&s, &b->debug->view, hit.name);
		if (fathom_names_next(&s, &off, NULL) == FATHOM_OK)
			done = add_candidate(&candidates, off, i);
	}
	done = done && make_jobs(b, &candidates);
	fathom_array_deinit(&candidates);
	if (!done)
		return FATHOM_E_MEMORY;
	b->wants_full = false;
	fathom_pool_run(1, b->n_jobs, run_task, b);
	return atomic_load(&b->err);
}

static fathom_err run_units(struct batch *b)
{
	const struct fathom_dwarf *view = &b->debug->view;
	const struct fathom_unit_map *quick = fathom_units_quick(&b->debug->units);
	const struct fathom_unit_map *full;

	if (!quick)
		return FATHOM_E_MEMORY;
	FATHOM_TRY(run_map(b, quick));
	if (!quick->n && b->n <= SCAN_LIMIT && view->section[FATHOM_DEBUG_NAMES].size &&
	    !atomic_load(&b->debug->units.full))
		FATHOM_TRY(run_by_names(b));
	if (all_done(b))
		return FATHOM_OK;
	full = fathom_units_full(&b->debug->units, b->workers[0]);
	return full ? run_map(b, full) : FATHOM_E_MEMORY;
}

/* What is looked up for @address. */
static uint64_t looked_up(const struct batch *b, uint64_t address)
{
	return address - (b->flags & FATHOM_RETURN_ADDRESSES && address ? 1 : 0);
}

/* What kinds of addresses there are: those of code have lines, the others may be variables. */
static void look_at_kinds(struct batch *b)
{
	const bool lines = !(b->flags & FATHOM_NAMES_ONLY);
	const bool variables = b->flags & FATHOM_VARIABLES;

	for (size_t i = 0; i < b->n; i++) {
		if ((b->any_code || !lines) && (b->any_data || !variables))
			return;
		if (fathom_object_has_code(b->module->main, looked_up(b, b->addresses[i])))
			b->any_code = true;
		else
			b->any_data = true;
	}
}

/* Counts the time since @start for the decision whether this run's work is worth storing. */
static void count_cost(const struct batch *b, int64_t start)
{
	atomic_fetch_add(&b->module->cost_ns, (uint64_t)(fathom_now_ns() - start));
}

/* Opens the debug information and makes the first jobs. */
static void open_debug(struct batch *b)
{
	const int64_t start = fathom_now_ns();
	const struct fathom_unit_map *quick;

	b->debug = fathom_module_debug(b->module, &b->no_lines);
	quick = b->debug ? fathom_units_quick(&b->debug->units) : NULL;
	b->planned = quick && quick->n && plan_rank(b, quick, 0);
	count_cost(b, start);
}

/* Starts the answer for @address; returns what is looked up for it. */
static uint64_t begin_answer(const struct batch *b, uint64_t address, struct fathom_answer *a)
{
	const struct fathom_object *o = b->module->main;
	const uint64_t svma = looked_up(b, address);

	*a = (struct fathom_answer){ .address = address,
				     .module_address = address,
				     .symbol = FATHOM_NONE,
				     .symbol_file = FATHOM_NONE,
				     .frame = FATHOM_NONE };
	if (o->image.type == ET_REL)
		a->module_address -= o->sections[fathom_object_section_at(o, svma)].base;
	return svma;
}

/* Look-ups that are on their way together. */
#define GROUP 32

/* Has the memory brought that the look-ups of addresses [first, end) will read. */
static void fetch_group(const struct batch *b, const struct fathom_part *p, size_t first,
			size_t end)
{
	if (!b->symbols)
		return;
	for (size_t i = first; i < end; i++)
		fathom_symbol_index_fetch_bucket(b->symbols, b->addresses[i]);
	for (size_t i = first; i < end; i++) {
		const uint32_t number =
			fathom_symbol_index_fetch_symbol(b->symbols, b->addresses[i]);

		if (number != FATHOM_NONE && p->symbol_ids)
			__builtin_prefetch(&p->symbol_ids[number]);
	}
}

/* Names only: nothing is shared between addresses but the index, so they stay in their order. */
static void run_plain(void *arg, size_t task, unsigned thread)
{
	struct batch *b = arg;
	const size_t first = task * NAMES_PER_TASK;
	const size_t end = first + NAMES_PER_TASK < b->n ? first + NAMES_PER_TASK : b->n;
	const struct found nothing = { 0 };

	for (size_t i = first; i < end; i++) {
		const struct query q = { begin_answer(b, b->addresses[i], &b->answers->answers[i]),
					 (uint32_t)i, false };

		if ((i - first) % GROUP == 0)
			fetch_group(b, &b->answers->parts[thread], i,
				    end - i > GROUP ? i + GROUP : end);
		answer(b, &b->answers->parts[thread], &q, &nothing);
	}
}

/* Fills in the queries, sorted, and the answers, which know nothing yet. */
static fathom_err sort_queries(struct batch *b)
{
	struct fathom_keyed *keyed = malloc((2 * b->n + 1) * sizeof *keyed);

	b->queries = malloc((b->n + 1) * sizeof *b->queries);
	if (!keyed || !b->queries) {
		free(keyed);
		return FATHOM_E_MEMORY;
	}
	for (size_t i = 0; i < b->n; i++)
		keyed[i] = (struct fathom_keyed){
			begin_answer(b, b->addresses[i], &b->answers->answers[i]), i
		};
	fathom_sort_keyed(keyed, keyed + b->n, b->n);
	for (size_t i = 0; i < b->n; i++)
		b->queries[i] = (struct query){ keyed[i].key, (uint32_t)keyed[i].value, false };
	free(keyed);
	return FATHOM_OK;
}

static fathom_err acquire_workers(struct batch *b)
{
	b->threads = b->module->session->threads;
	if (b->threads > FATHOM_MAX_THREADS)
		b->threads = FATHOM_MAX_THREADS;
	b->answers->n_parts = b->threads;
	for (unsigned i = 0; i < b->threads; i++) {
		b->workers[i] = fathom_worker_acquire(b->module->session);
		if (!b->workers[i])
			return FATHOM_E_MEMORY;
		b->answers->parts[i].number = i;
		b->answers->parts[i].flags = b->flags;
	}
	return FATHOM_OK;
}

/* What has to be there before the jobs, in two parts that do not need each other. */
static void run_preparation(void *arg, size_t task, unsigned thread)
{
	struct batch *b = arg;
	fathom_err err;

	(void)thread;
	if (task == 0) {
		b->symbols = fathom_module_symbols(b->module, b->alias);
		if (!b->symbols)
			fail(b, FATHOM_E_MEMORY);
		return;
	}
	err = sort_queries(b);
	if (err)
		fail(b, err);
	else if (!b->index && b->any_code)
		open_debug(b);
}

static fathom_err prepare_batch(struct batch *b)
{
	const bool few =
		b->n <= SCAN_LIMIT &&
		atomic_load_explicit(&b->module->scans, memory_order_relaxed) < SCANS_WORTH_INDEX;
	const bool scan = few || (b->index && b->alias == FATHOM_ALIAS_FATHOM);
	const bool plain = b->flags & FATHOM_NAMES_ONLY;
	const bool many = b->n >= NAMES_PER_TASK;

	b->no_lines = FATHOM_REASON_NO_DEBUG_INFO;
	FATHOM_TRY(acquire_workers(b));
	if (many && !plain && !scan) {
		fathom_pool_run(b->threads, 2, run_preparation, b);
	} else {
		if (!scan)
			run_preparation(b, 0, 0);
		if (!plain)
			run_preparation(b, 1, 0);
	}
	return atomic_load(&b->err);
}

/* Finds lines and inlined calls: in the stored index, then in the debug information. */
static fathom_err run_lines(struct batch *b, size_t n_tasks)
{
	fathom_err err = FATHOM_OK;
	int64_t start;

	if (b->index) {
		fathom_pool_run(n_tasks > 1 ? b->threads : 1, n_tasks, run_stored, b);
		if (all_done(b) || (b->index->header->flags & FATHOM_INDEX_COMPLETE &&
				    !fathom_index_is_damaged(b->index)))
			return atomic_load(&b->err);
	}
	if (b->any_code && !b->debug)
		open_debug(b);
	start = fathom_now_ns();
	if (b->debug)
		err = run_units(b);
	count_cost(b, start);
	return err;
}

/* Reads where variables are declared, if that is asked for and known. */
static fathom_err prepare_variables(struct batch *b)
{
	const int64_t start = fathom_now_ns();
	enum fathom_reason reason;
	struct fathom_debug *d;

	if (!(b->flags & FATHOM_VARIABLES) || !b->any_data)
		return FATHOM_OK;
	d = fathom_module_debug(b->module, &reason);
	if (!d)
		return FATHOM_OK;
	b->variables = fathom_variables_get(d, b->workers[0]);
	count_cost(b, start);
	return b->variables ? FATHOM_OK : FATHOM_E_MEMORY;
}

static fathom_err run_batch(struct batch *b)
{
	const size_t n_tasks = (b->n + NAMES_PER_TASK - 1) / NAMES_PER_TASK;
	const bool plain = b->flags & FATHOM_NAMES_ONLY;

	b->index = fathom_cache_index(b->module);
	look_at_kinds(b);
	FATHOM_TRY(prepare_batch(b));
	FATHOM_TRY(prepare_variables(b));
	if (!plain)
		FATHOM_TRY(run_lines(b, n_tasks));
	fathom_pool_run(n_tasks > 1 ? b->threads : 1, n_tasks, plain ? run_plain : run_names, b);
	for (unsigned i = 0; i < b->threads; i++)
		if (b->answers->parts[i].err)
			fail(b, b->answers->parts[i].err);
	return atomic_load(&b->err);
}

/* Copies what the caller's header knows and refuses what ours does not. */
static fathom_err read_options(const struct fathom_symbolize_options *options, struct batch *b)
{
	const uint32_t known = FATHOM_NAMES_ONLY | FATHOM_RETURN_ADDRESSES | FATHOM_NO_DEMANGLE |
			       FATHOM_DWARF_NAMES | FATHOM_ONE_SHOT | FATHOM_VARIABLES;
	struct fathom_symbolize_options o;

	if (!options)
		return FATHOM_OK;
	if (!fathom_options_copy(options, &o, sizeof o) ||
	    !fathom_options_reserved(o.reserved, sizeof o.reserved / sizeof *o.reserved) ||
	    (o.flags & ~known) || o.alias > FATHOM_ALIAS_LLVM)
		return FATHOM_E_ARGUMENT;
	b->flags = o.flags;
	b->alias = (enum fathom_alias)o.alias;
	return FATHOM_OK;
}

fathom_err fathom_symbolize(struct fathom_target *target,
			    const struct fathom_symbolize_options *options,
			    const uint64_t *addresses, size_t n,
			    struct fathom_answers **ret_answers, struct fathom_errinfo *reterr)
{
	struct batch b = { .module = target->module, .addresses = addresses, .n = n };
	fathom_err err = read_options(options, &b);

	if (err)
		return fathom_fail(reterr, err, "", 0, "options that this version does not know");
	if (n > UINT32_MAX / 2)
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				   "more addresses than one batch may have");
	b.answers = calloc(1, sizeof *b.answers);
	if (b.answers)
		b.answers->answers = malloc((n + 1) * sizeof *b.answers->answers);
	err = b.answers && b.answers->answers ? run_batch(&b) : FATHOM_E_MEMORY;
	for (unsigned i = 0; i < b.threads; i++)
		fathom_worker_release(b.workers[i]);
	free(b.queries);
	free(b.jobs);
	free(b.order);
	if (err) {
		fathom_answers_free(b.answers);
		return fathom_fail(reterr, err, "", 0, fathom_err_name(err));
	}
	b.answers->n = n;
	*ret_answers = b.answers;
	return FATHOM_OK;
}
