/* SPDX-License-Identifier: MIT */
#include "host/filter/log_code_lines.h"

#include <stdlib.h>

#include "host/filter/log_code_bytes.h"
#include "host/filter/log_evidence.h"
#include "host/filter/log_heads.h"

/* Modules that are kept as refuted. */
#define MAX_REFUTED 64

struct walk {
	struct fathom_log_scan *scan;
	struct fathom_log_modules *modules;
	const uint32_t *of_numbers;
	const struct fathom_log_places_of *symbols;
	const uint64_t *places;
	uint32_t *reports;                 /* of the numbers, from 0 */
	uint32_t n_heads;                  /* in the text */
	struct fathom_keyed_array refuted; /* report and module; sorted */
	const char *last;                  /* the last line that refutes; NULL: none */
	struct fathom_errinfo *reterr;
};

/* Finds the report of each number of @w, and how many there are. */
static void find_reports(struct walk *w, const char *text, size_t size)
{
	struct fathom_log_heads h;
	uint32_t report = 0;

	fathom_log_heads_begin(&h, text, text + size, true);
	for (size_t i = 0; i < w->scan->numbers.n; i++) {
		for (; h.next < w->scan->numbers.items[i].line_end; report++)
			fathom_log_heads_pass(&h, h.next + 1);
		w->reports[i] = report;
	}
	w->n_heads = report + (h.next < h.end);
}

/* Returns whether the bytes of line @i are of another file than @address of its module. */
static fathom_err compare(struct walk *w, size_t i, const struct fathom_log_code_bytes *code,
			  uint64_t address, bool *ret_differ)
{
	const struct fathom_log_number *n = &w->scan->numbers.items[i];
	struct fathom_log_module *m = &w->modules->modules.items[w->of_numbers[i]];
	const struct fathom_patch_sites *sites;

	FATHOM_TRY(fathom_log_module_sites(m, n->base == FATHOM_LOG_SYMBOL, &sites, w->reterr));
	*ret_differ = fathom_log_code_bytes_differ(m->target->stated, sites, code, address);
	return FATHOM_OK;
}

/* Returns whether line @i says of which file its code is, and this is not the module's. */
static fathom_err is_other(struct walk *w, size_t i, bool *ret)
{
	const struct fathom_log_number *n = &w->scan->numbers.items[i];
	const struct fathom_log_module *m = &w->modules->modules.items[w->of_numbers[i]];
	const struct fathom_log_places_of *p = &w->symbols[i];
	struct fathom_log_code_bytes code;
	uint64_t address;

	*ret = false;
	/* A build-id says more, and the running kernel has no file. */
	if (!m->target || !m->target->stated || (n->module.size && !m->is_by_path) ||
	    w->reports[i] != (n->counter == SIZE_MAX ? 0 : w->reports[n->counter]) ||
	    !fathom_log_code_bytes_read(n->code, &code))
		return FATHOM_OK;
	if (n->base != FATHOM_LOG_SYMBOL)
		return fathom_log_address_of(n, m, &address) ? FATHOM_OK
							     : compare(w, i, &code, address, ret);
	*ret = p->n != 0;
	for (size_t k = 0; *ret && k < p->n; k++)
		FATHOM_TRY(compare(w, i, &code, w->places[p->first + k], ret));
	return FATHOM_OK;
}

static fathom_err add(struct walk *w, uint32_t report, uint32_t module)
{
	return fathom_array_push(&w->refuted,
				 (struct fathom_keyed){ (uint64_t)report << 32 | module, 0 })
		       ? FATHOM_OK
		       : fathom_fail_memory(w->reterr);
}

/* Adds what earlier calls have refuted to the report that the text goes on with. */
static fathom_err add_former(struct walk *w, const struct fathom_log_code_lines *c)
{
	for (size_t i = 0; i < w->scan->numbers.n && !w->reports[i]; i++) {
		const struct fathom_log_number *n = &w->scan->numbers.items[i];

		for (size_t k = 0; k < c->refuted.n; k++)
			if (str_equal(c->refuted.items[k].name, n->module) &&
			    str_equal(c->refuted.items[k].build_id, n->build_id))
				FATHOM_TRY(add(w, 0, w->of_numbers[i]));
	}
	return FATHOM_OK;
}

/* Checks all lines with code. */
static fathom_err check_lines(struct walk *w)
{
	for (size_t i = 0; i < w->scan->numbers.n; i++) {
		const struct fathom_log_number *n = &w->scan->numbers.items[i];
		bool is;

		if (!n->code.size)
			continue;
		FATHOM_TRY(is_other(w, i, &is));
		if (!is)
			continue;
		w->last = n->line_start;
		FATHOM_TRY(add(w, w->reports[i], w->of_numbers[i]));
	}
	if (!fathom_array_room(&w->refuted, w->refuted.n))
		return fathom_fail_memory(w->reterr);
	fathom_sort_keyed(w->refuted.items, w->refuted.items + w->refuted.n, w->refuted.n);
	return FATHOM_OK;
}

/* Marks the numbers of modules that their report refutes. */
static void mark(const struct walk *w)
{
	const struct fathom_keyed_array *r = &w->refuted;

	for (size_t i = 0; r->n && i < w->scan->numbers.n; i++) {
		const uint64_t key = (uint64_t)w->reports[i] << 32 | w->of_numbers[i];
		const size_t k = FATHOM_BISECT(r->n, x, r->items[x].key < key);

		w->scan->numbers.items[i].is_refuted = k < r->n && r->items[k].key == key;
	}
}

/* Adds @m to what the next call shall know, if there is room. */
static bool keep_module(struct fathom_log_code_lines *c, const struct fathom_log_module *m)
{
	struct fathom_log_refuted refuted = { m->name, m->build_id };

	for (size_t i = 0; i < c->refuted.n; i++)
		if (str_equal(c->refuted.items[i].name, m->name) &&
		    str_equal(c->refuted.items[i].build_id, m->build_id))
			return true;
	if (c->refuted.n == MAX_REFUTED)
		return true;
	refuted.name.data = fathom_arena_strdup(&c->texts, m->name);
	refuted.build_id.data = fathom_arena_strdup(&c->texts, m->build_id);
	return refuted.name.data && refuted.build_id.data &&
	       fathom_array_push(&c->refuted, refuted);
}

/* Keeps what the last report has refuted. */
static fathom_err keep(const struct walk *w, struct fathom_log_code_lines *c, const char *text_end)
{
	const struct fathom_keyed_array *r = &w->refuted;

	if (w->n_heads) {
		c->refuted.n = 0;
		fathom_arena_deinit(&c->texts);
		c->texts = (struct fathom_arena){ NULL, 0 };
	}
	if (w->last)
		c->distance = (size_t)(text_end - w->last);
	for (size_t i = r->n; i && r->items[i - 1].key >> 32 == w->n_heads; i--) {
		const uint32_t module = (uint32_t)r->items[i - 1].key;

		if (!keep_module(c, &w->modules->modules.items[module]))
			return fathom_fail_memory(w->reterr);
	}
	return FATHOM_OK;
}

/* Returns whether any line has code. */
static bool has_code(const struct fathom_log_scan *s)
{
	for (size_t i = 0; i < s->numbers.n; i++)
		if (s->numbers.items[i].code.size)
			return true;
	return false;
}

fathom_err fathom_log_check_code(struct fathom_log_code_lines *c, struct fathom_log_scan *s,
				 struct fathom_log_modules *modules, const uint32_t *of_numbers,
				 const struct fathom_log_places_of *symbols, const uint64_t *places,
				 const char *text, size_t size, struct fathom_errinfo *reterr)
{
	struct walk w = { .scan = s,
			  .modules = modules,
			  .of_numbers = of_numbers,
			  .symbols = symbols,
			  .places = places,
			  .reterr = reterr };
	fathom_err err;

	c->distance += size;
	if (c->distance > FATHOM_LOG_REPORT_SPAN) {
		c->refuted.n = 0;
		fathom_arena_deinit(&c->texts);
		c->texts = (struct fathom_arena){ NULL, 0 };
	}
	if (!c->refuted.n && !has_code(s))
		return FATHOM_OK;
	w.reports = malloc((s->numbers.n + 1) * sizeof *w.reports);
	if (!w.reports)
		return fathom_fail_memory(reterr);
	find_reports(&w, text, size);
	err = add_former(&w, c);
	if (!err)
		err = check_lines(&w);
	if (!err) {
		mark(&w);
		err = keep(&w, c, text + size);
	}
	free(w.reports);
	fathom_array_free(&w.refuted);
	return err;
}

void fathom_log_code_lines_deinit(struct fathom_log_code_lines *c)
{
	fathom_array_free(&c->refuted);
	fathom_arena_deinit(&c->texts);
}
