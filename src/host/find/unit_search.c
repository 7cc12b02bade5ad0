/* SPDX-License-Identifier: MIT */
#include "host/find/unit_search.h"

#include <stdlib.h>

#include "host/base/progress.h"
#include "host/file/file.h"
#include "host/symbolize/batch.h"
#include "safe/base/sort.h"

/* Bytes of .debug_info per task. */
#define TASK_BYTES (UINT64_C(1) << 20)

/* Units [from, to) of the list. */
struct part {
	struct fathom_find_task task;
	size_t from;
	size_t to;
	fathom_err err;
};

struct parts {
	FATHOM_ARRAY_OF(struct part);
};

struct walk {
	struct fathom_find *f;
	struct fathom_debug *d;
	fathom_find_unit_fn *fn;
	struct fathom_worker *workers[FATHOM_MAX_THREADS];
	struct fathom_u64_array offs; /* offsets of the units, and the end */
	struct parts parts;
	const struct fathom_symbol_index
		*symbols; /* NULL: few places, which are looked up by passes */
};

/* More places than this are worth the module's index of symbols. */
#define MOST_PASSES 32

bool fathom_find_task_asks(const struct fathom_find_task *t, uint32_t query)
{
	return fathom_find_asks(t->f, query, t->module);
}

bool fathom_find_task_add(struct fathom_find_task *t, const struct fathom_find_place *p)
{
	return fathom_budget_push(&t->f->budget, &t->places, *p);
}

static void note(const struct walk *w, struct fathom_errinfo *info)
{
	if (!info->file[0])
		fathom_errinfo_set_file(info, w->d->object->file->path);
	fathom_notes_add(w->f->notes, info);
}

/* Returns whether @err ends the search; others only cost a unit, and are noted. */
static bool is_final(fathom_err err)
{
	return err == FATHOM_E_MEMORY || err == FATHOM_E_CANCELLED;
}

static void run_part(void *data, size_t number, unsigned thread)
{
	struct walk *w = data;
	struct part *p = w->parts.items + number;
	const uint64_t *offs = w->offs.items;
	const struct fathom_bytes info = w->d->view.section[FATHOM_DEBUG_INFO];

	p->task.w = w->workers[thread];
	for (size_t i = p->from; i < p->to && !is_final(p->err); i++) {
		struct fathom_errinfo error = { 0 };

		p->err = w->fn(&p->task, offs[i], &error);
		if (p->err && !is_final(p->err))
			note(w, &error);
	}
	fathom_file_give_back(w->d->object->file,
			      bytes_slice(info, offs[p->from], offs[p->to] - offs[p->from]));
}

static bool add_off(struct walk *w, uint64_t off)
{
	return fathom_array_push(&w->offs, off);
}

/* Lists the units except type units and unsupported versions. */
static bool list_units(struct walk *w)
{
	const struct fathom_dwarf *view = &w->d->view;
	const uint64_t size = view->section[FATHOM_DEBUG_INFO].size;
	struct fathom_unit_header header;
	uint64_t off = 0;
	bool done = true;

	for (; done && off < size; off = header.end_off) {
		const fathom_err err = fathom_unit_header_read(view, off, &header, NULL);

		if (err &&
		    (err != FATHOM_E_UNSUPPORTED || !fathom_unit_end(view, off, &header.end_off)))
			break;
		if (!err && header.type != DW_UT_type)
			done = add_off(w, off);
	}
	return done && add_off(w, off);
}

/* Divides the units into parts. */
static bool divide(struct walk *w, uint32_t module)
{
	const uint64_t *offs = w->offs.items;
	const size_t n = w->offs.n - 1;

	for (size_t from = 0; from < n;) {
		struct part p = { .from = from, .to = from + 1 };

		while (p.to < n && offs[p.to] - offs[from] < TASK_BYTES)
			p.to++;
		p.task.f = w->f;
		p.task.d = w->d;
		p.task.module = module;
		if (!fathom_array_push(&w->parts, p))
			return false;
		from = p.to;
	}
	return true;
}

static bool acquire_workers(struct walk *w, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		w->workers[i] = fathom_worker_acquire(w->f->budget.session);
		if (!w->workers[i])
			return false;
	}
	return true;
}

static int compare_texts(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

static int compare_places(const void *pa, const void *pb)
{
	const struct fathom_find_place *a = pa;
	const struct fathom_find_place *b = pb;
	int order = u64_compare(a->query, b->query);

	if (!order)
		order = u64_compare(a->svma, b->svma);
	if (!order)
		order = u64_compare(a->size, b->size);
	if (!order)
		order = compare_texts(a->linkage, b->linkage);
	if (!order)
		order = compare_texts(a->caller, b->caller);
	if (!order)
		order = compare_texts(a->file, b->file);
	return order ? order : u64_compare(a->line, b->line);
}

static struct fathom_str str_of(const char *s)
{
	return (struct fathom_str){ s, s ? (uint32_t)strlen(s) : 0 };
}

/* Finds the symbol at @svma, by the module's index if there are many places. */
static bool find_symbol(const struct walk *w, const struct fathom_find_module *m, uint64_t svma,
			struct fathom_symbol_hit *ret)
{
	uint32_t number;

	if (!w->symbols)
		return fathom_symbols_scan(&m->module->symbols, svma, NULL, ret);
	number = fathom_symbol_index_at(w->symbols, svma);
	if (number == FATHOM_NONE)
		return false;
	fathom_symbol_index_place(w->symbols, number, ret);
	ret->name = fathom_symbol_index_name(w->symbols, number);
	ret->shared = fathom_symbol_index_is_folded(w->symbols, number);
	return true;
}

/*
 * Copies the linkage name of the symbol at @svma to *@ret, NULL if there is none; of several
 * symbols, the one that debug information names. Returns false without memory.
 */
static bool name_symbol(const struct walk *w, const struct fathom_find_module *m, uint64_t svma,
			const char **ret)
{
	const struct fathom_batch_options o = { .flags = FATHOM_NAMES_ONLY | FATHOM_NO_DEMANGLE |
							 FATHOM_BATCH_UNFOLD | FATHOM_ONE_SHOT };
	const struct fathom_module_group group = { .module = m->module,
						   .addresses = &svma,
						   .n = 1 };
	const struct fathom_answer *a = NULL;
	struct fathom_symbol_hit hit;
	struct fathom_answers *answers;
	bool done;

	*ret = NULL;
	if (!find_symbol(w, m, svma, &hit))
		return true;
	if (!hit.shared) {
		*ret = fathom_find_keep(w->f, hit.name);
		return *ret != NULL;
	}
	answers = fathom_answers_create(1, o.flags);
	done = answers && fathom_symbolize_group(&group, &o, answers) == FATHOM_OK;
	if (done)
		a = fathom_answers_get(answers, 0);
	if (a && a->symbol)
		*ret = fathom_find_keep(w->f, str_of(a->linkage_name));
	fathom_answers_free(answers);
	return done && *ret;
}

/* Adds a frame of function @linkage in @file to the matches; returns NULL without memory. */
static struct fathom_frame *add_frame(struct fathom_find *f, struct fathom_find_name *name,
				      const char *linkage, const char *file, uint32_t line)
{
	struct fathom_frame *frame = fathom_find_alloc(f, sizeof *frame);
	const struct fathom_str link = str_of(linkage);
	struct fathom_str shown;

	if (!frame)
		return NULL;
	*frame = (struct fathom_frame){ .line = line,
					.file = fathom_find_keep(f, str_of(file)),
					.file_size = str_of(file).size };
	if (linkage) {
		fathom_find_name_set(name, link);
		shown = fathom_find_name_shown(name);
		frame->linkage_name = linkage;
		frame->linkage_size = link.size;
		frame->function =
			shown.size == link.size && memcmp(shown.data, linkage, link.size) == 0
				? frame->linkage_name
				: fathom_find_keep(f, shown);
		frame->function_size = shown.size;
	}
	return (file && !frame->file) || (linkage && !frame->function) ? NULL : frame;
}

/* Adds the match for @p; returns false without memory. */
static bool add_match(struct walk *w, uint32_t module, const struct fathom_find_place *p,
		      struct fathom_find_name *name)
{
	const struct fathom_find_module *m = &w->f->modules[module];
	struct fathom_match match = {
		.address = fathom_find_avma(m, p->svma),
		.module_address = fathom_object_stated(m->module->main, p->svma),
		.size = p->size,
		.module = m->path,
		.query = p->query,
		.rank = w->f->n_matches[p->query] + 1,
		.source = FATHOM_SOURCE_DWARF,
		.kind = p->linkage ? FATHOM_MATCH_INLINED : FATHOM_MATCH_LINE,
		.flags = FATHOM_MATCH_ADDRESS,
	};
	const char *linkage = fathom_find_keep(w->f, str_of(p->linkage));
	const char *caller = fathom_find_keep(w->f, str_of(p->caller));
	struct fathom_frame *frame;

	if ((p->linkage && !linkage) || (p->caller && !caller) ||
	    (!p->linkage && !name_symbol(w, m, p->svma, &linkage)))
		return false;
	frame = p->linkage ? add_frame(w->f, name, linkage, NULL, 0)
			   : add_frame(w->f, name, linkage, p->file, p->line);
	if (!frame)
		return false;
	if (p->linkage) {
		frame->start = match.address;
		frame->outer = add_frame(w->f, name, caller, p->file, p->line);
		if (!frame->outer)
			return false;
	}
	match.frame = frame;
	match.name = frame->function;
	match.linkage_name = frame->linkage_name;
	return fathom_find_add(w->f, &match);
}

#define DROPPED UINT32_MAX

/* Drops those of @n places of one function that have a higher tier than another. */
static void drop_lesser(struct fathom_find_place *places, const struct fathom_keyed *keyed,
			size_t n)
{
	uint32_t best = DROPPED;

	for (size_t i = 0; i < n; i++)
		best = places[keyed[i].value].tier < best ? places[keyed[i].value].tier : best;
	for (size_t i = 0; i < n; i++)
		if (places[keyed[i].value].tier > best)
			places[keyed[i].value].tier = DROPPED;
}

/*
 * Keeps the best places of each function among the @n places of one query. Returns false without
 * memory.
 */
static bool choose_places(const struct walk *w, const struct fathom_find_module *m,
			  struct fathom_find_place *places, size_t n)
{
	struct fathom_keyed *keyed = malloc((2 * n + 1) * sizeof *keyed);
	size_t end;

	if (!keyed)
		return false;
	for (size_t i = 0; i < n; i++) {
		struct fathom_symbol_hit hit = { 0 };

		(void)find_symbol(w, m, places[i].svma, &hit);
		keyed[i] = (struct fathom_keyed){ hit.start, i };
	}
	fathom_sort_keyed(keyed, keyed + n, n);
	for (size_t i = 0; i < n; i = end) {
		for (end = i + 1; end < n && keyed[end].key == keyed[i].key;)
			end++;
		drop_lesser(places, keyed + i, end - i);
	}
	free(keyed);
	return true;
}

/* Keeps the best places for each query that has places of several tiers. */
static bool choose_all(const struct walk *w, const struct fathom_find_module *m,
		       struct fathom_find_place *places, size_t n)
{
	size_t end;

	for (size_t i = 0; i < n; i = end) {
		bool differ = false;

		for (end = i + 1; end < n && places[end].query == places[i].query; end++)
			differ |= places[end].tier != places[i].tier;
		if (differ && !choose_places(w, m, places + i, end - i))
			return false;
	}
	return true;
}

/* Turns the places of all parts into matches without duplicates: units may share a line table. */
static bool take_places(struct walk *w, uint32_t module)
{
	struct part *parts = w->parts.items;
	struct fathom_find_places all = { 0 };
	struct fathom_find_name name = { 0 };
	struct fathom_find_place *place;
	bool done = true;

	for (size_t i = 0; done && i < w->parts.n; i++) {
		const struct fathom_find_places *from = &parts[i].task.places;

		done = fathom_budget_room(&w->f->budget, &all, from->n);
		if (done && from->n)
			memcpy(all.items + all.n, from->items, from->n * sizeof *place);
		all.n += from->n;
	}
	place = all.items;
	/* Without units the array is NULL. */
	if (done && all.n)
		qsort(all.items, all.n, sizeof *place, compare_places);
	/* Without memory for the index, passes do it. */
	w->symbols =
		done && all.n > MOST_PASSES
			? fathom_module_symbols(w->f->modules[module].module, FATHOM_ALIAS_FATHOM)
			: NULL;
	done = done && choose_all(w, &w->f->modules[module], place, all.n);
	for (size_t i = 0; done && i < all.n; i++)
		if (place[i].tier != DROPPED && (!i || compare_places(&place[i - 1], &place[i])) &&
		    fathom_find_is_there(w->f, &w->f->modules[module], place[i].svma) &&
		    fathom_find_has_room(w->f, place[i].query))
			done = add_match(w, module, &place[i], &name);
	fathom_budget_free(&w->f->budget, &all);
	fathom_find_name_deinit(&name);
	return done;
}

static fathom_err walk_module(struct walk *w, uint32_t module)
{
	const unsigned threads = w->f->budget.session->threads;
	struct part *parts;
	bool done = list_units(w) && divide(w, module) &&
		    acquire_workers(w, w->parts.n > 1 ? threads : 1);

	parts = w->parts.items;
	if (done)
		fathom_run_asking(w->f->budget.session, FATHOM_PHASE_FIND,
				  w->parts.n > 1 ? threads : 1, w->parts.n, run_part, w);
	for (size_t i = 0; i < w->parts.n; i++)
		done &= !is_final(parts[i].err);
	done = done && take_places(w, module);
	for (size_t i = 0; i < w->parts.n; i++) {
		fathom_budget_free(&w->f->budget, &parts[i].task.places);
		fathom_arena_deinit(&parts[i].task.arena);
	}
	for (unsigned i = 0; i < FATHOM_MAX_THREADS; i++)
		if (w->workers[i])
			fathom_worker_release(w->workers[i]);
	fathom_array_free(&w->offs);
	fathom_array_free(&w->parts);
	return done ? FATHOM_OK : FATHOM_E_MEMORY;
}

/* Returns whether a query of the wanted kind selects module @module. */
static bool is_asked(const struct fathom_find *f, bool lines, uint32_t module)
{
	for (uint32_t i = 0; i < f->n_queries; i++)
		if (f->queries[i].kind != FATHOM_QUERY_BAD &&
		    (f->queries[i].kind == FATHOM_QUERY_LINE) == lines &&
		    fathom_find_asks(f, i, module))
			return true;
	return false;
}

fathom_err fathom_find_units(struct fathom_find *f, bool lines, fathom_find_unit_fn *fn)
{
	for (uint32_t i = 0; i < f->n_modules; i++) {
		struct walk w = { .f = f, .fn = fn };
		enum fathom_reason reason;

		if (!is_asked(f, lines, i))
			continue;
		w.d = fathom_module_debug(f->modules[i].module, &reason);
		if (w.d)
			FATHOM_TRY(walk_module(&w, i));
	}
	return FATHOM_OK;
}
