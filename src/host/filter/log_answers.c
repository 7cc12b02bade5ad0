/* SPDX-License-Identifier: MIT */
/*
 * From lines to answers: the numbers that log_scan.c finds, each in its module (log_modules.c),
 * become addresses of that module's file, and the addresses of one module are one batch.
 */
#include <stdlib.h>

#include "fathom/find.h"
#include "fathom/symbolize.h"
#include "host/base/option_struct.h"
#include "host/file/maps.h"
#include "host/filter/log_code_lines.h"
#include "host/filter/log_context.h"
#include "host/filter/log_evidence.h"
#include "host/filter/log_guess.h"
#include "host/filter/log_hold.h"
#include "host/module/module.h"

struct fathom_log_filter {
	struct fathom_log_scan scan;
	struct fathom_log_modules modules;
	struct fathom_log_context context;
	struct fathom_maps maps; /* of the log's process; none: it is not known */
	/* The format whose next number a signal has interrupted; NULL: there is none. */
	const char *interrupted;
	struct fathom_log_code_lines code_lines;
	uint32_t store_ms; /* for all that a call asks of the stores */
};

struct fathom_log_addresses {
	FATHOM_ARRAY_OF(struct fathom_log_address);
	struct fathom_arena texts;       /* names of modules that are not in the text */
	struct fathom_answers **answers; /* of the modules */
	size_t n_answers;
};

/* An address that is asked for. */
struct asked {
	uint64_t address;
	size_t number; /* in the scan's */
	uint32_t module;
	uint8_t kind; /* enum fathom_pc_kind */
};

/* The state of one call. */
struct work {
	struct fathom_log_filter *filter;
	const char *text;
	size_t size;                          /* of text */
	uint32_t *modules;                    /* of the numbers */
	struct fathom_log_places_of *symbols; /* of the numbers */
	struct fathom_u64_array places;
	struct {
		FATHOM_ARRAY_OF(struct asked); /* parallel to the result's */
	} asked;
	struct fathom_keyed_array order;
	struct fathom_log_addresses *result;
	struct fathom_errinfo *reterr;
};

/* Returns the module of @n, as a text that outlives the filter; no data without memory. */
static struct fathom_str kept_module(struct work *w, const struct fathom_log_number *n)
{
	struct fathom_str module = n->module;

	/* Earlier lines can have named it. */
	if (module.size && (uintptr_t)module.data - (uintptr_t)w->text >= w->size)
		module.data = fathom_arena_strdup(&w->result->texts, module);
	return module;
}

/* Adds an address of number @i; @reason: why it has no answer. */
static fathom_err ask(struct work *w, size_t i, uint64_t address, enum fathom_reason reason)
{
	const struct fathom_log_number *n = &w->filter->scan.numbers.items[i];
	const struct fathom_log_module *module = &w->filter->modules.modules.items[w->modules[i]];
	const struct fathom_str name = kept_module(w, n);
	const struct asked asked = {
		.address = address,
		.number = i,
		.module = w->modules[i],
		.kind = n->kind == FATHOM_LOG_RETURN ? FATHOM_PC_RETURN : FATHOM_PC_EXACT,
	};
	const struct fathom_log_address a = {
		.at = (size_t)(n->at - w->text),
		.size = n->size,
		.line_start = (size_t)(n->line_start - w->text),
		.line_end = (size_t)(n->line_end - w->text),
		.line = n->line,
		.number = n->value,
		.format = n->format,
		.module = name.size ? name.data : NULL,
		.module_size = name.size,
		.symbol = n->symbol.data,
		.symbol_size = n->symbol.size,
		.kind = n->kind,
		.base = n->base,
		.is_by_path = n->module.size && module->target && module->is_by_path,
		.reason = (uint8_t)reason,
		.is_guessed = n->is_guessed,
	};

	return (!name.size || name.data) && fathom_array_push(&w->asked, asked) &&
			       fathom_array_push(w->result, a)
		       ? FATHOM_OK
		       : fathom_fail_memory(w->reterr);
}

/* Makes @n, an address in memory without a module, one of the file that @maps has there. */
static void place_in_map(const struct fathom_maps *maps, struct fathom_log_number *n)
{
	const struct fathom_mapping *m;
	size_t i;

	if (!maps->n || n->base != FATHOM_LOG_LIVE || n->module.size)
		return;
	i = fathom_maps_at(maps, n->value);
	if (i == maps->n)
		return;
	m = &maps->items[i];
	if (!m->name.size || *m->name.data != '/')
		return;
	n->module = m->name;
	n->base = FATHOM_LOG_MAPPED;
	n->raised = m->off - m->start;
	n->is_file_offset = true;
}

/* Finds the modules of all numbers. */
static fathom_err find_modules(struct work *w)
{
	const struct fathom_log_scan *s = &w->filter->scan;
	size_t module = 0;

	for (size_t i = 0; i < s->numbers.n; i++) {
		place_in_map(&w->filter->maps, &s->numbers.items[i]);
		FATHOM_TRY(fathom_log_modules_find(&w->filter->modules, &s->numbers.items[i],
						   &module, w->reterr));
		w->modules[i] = (uint32_t)module;
	}
	return FATHOM_OK;
}

/* Sorts [0, @n) by module_of(i), in place of w->order. */
static fathom_err order_by_module(struct work *w, size_t n,
				  uint32_t (*module_of)(const struct work *w, size_t i))
{
	w->order.n = 0;
	if (!fathom_array_room(&w->order, 2 * n))
		return fathom_fail_memory(w->reterr);
	for (size_t i = 0; i < n; i++)
		w->order.items[i] = (struct fathom_keyed){ module_of(w, i), i };
	w->order.n = n;
	fathom_sort_keyed(w->order.items, w->order.items + n, n);
	return FATHOM_OK;
}

/* Returns where the run of one module that starts at @from of w->order ends. */
static size_t end_of_run(const struct work *w, size_t from)
{
	size_t to = from + 1;

	while (to < w->order.n && w->order.items[to].key == w->order.items[from].key)
		to++;
	return to;
}

static uint32_t module_of_number(const struct work *w, size_t i)
{
	return w->modules[i];
}

static uint32_t module_of_asked(const struct work *w, size_t i)
{
	return w->asked.items[i].module;
}

/* Names of one search. */
#define NAMES_TOGETHER 65536

/* Symbols of one name that are looked at. */
#define MAX_SYMBOLS 256

/*
 * Adds the place of @match, a symbol that number @i counts from. Of several of one name the log's
 * size tells which; a backtrace has the one that the dynamic linker finds.
 */
static fathom_err add_place(struct work *w, size_t i, const struct fathom_match *match)
{
	const struct fathom_log_number *n = &w->filter->scan.numbers.items[i];
	struct fathom_log_module *m = &w->filter->modules.modules.items[w->modules[i]];
	struct fathom_log_places_of *p = &w->symbols[i];
	bool has_size = true;

	if (!(match->flags & FATHOM_MATCH_ADDRESS) || (!n->symbol_size && p->n) ||
	    n->value > UINT64_MAX - match->address || (n->symbol_size && n->value > n->symbol_size))
		return FATHOM_OK;
	if (n->symbol_size)
		FATHOM_TRY(fathom_log_module_has_size(m, match->address, match->size,
						      n->symbol_size, &has_size, w->reterr));
	if (!has_size)
		return FATHOM_OK;
	if (!p->n)
		p->first = w->places.n;
	p->n++;
	return fathom_array_push(&w->places, match->address + n->value)
		       ? FATHOM_OK
		       : fathom_fail_memory(w->reterr);
}

/* Finds the @n symbols called @names, of the numbers from @from of w->order on that have one. */
static fathom_err search_names(struct work *w, struct fathom_target *target,
			       const char *const *names, const size_t *numbers, size_t n)
{
	const struct fathom_find_options options = { .size = sizeof options,
						     .flags = FATHOM_FIND_LITERAL |
							      FATHOM_FIND_LINKED,
						     .limit = MAX_SYMBOLS };
	struct fathom_matches *matches;
	fathom_err err;

	err = fathom_find(target, &options, names, n, &matches, w->reterr);
	/* A target that cannot be searched has no answers; the log goes on. */
	if (err)
		return err == FATHOM_E_MEMORY || err == FATHOM_E_CANCELLED ? err : FATHOM_OK;
	for (size_t i = 0; !err && i < fathom_matches_count(matches); i++) {
		const struct fathom_match *match = fathom_matches_get(matches, i);

		err = add_place(w, numbers[match->query], match);
	}
	fathom_matches_free(matches);
	return err;
}

/* Names that are searched together, in one module. */
struct names {
	struct fathom_arena texts;
	const char **names;
	size_t *numbers;
	size_t n;
};

/* Adds the symbol of number @i, if it has one. */
static fathom_err add_name(struct work *w, struct names *names, size_t i)
{
	const struct fathom_log_number *n = &w->filter->scan.numbers.items[i];

	if (n->base != FATHOM_LOG_SYMBOL)
		return FATHOM_OK;
	names->names[names->n] = fathom_arena_strdup(&names->texts, n->symbol);
	if (!names->names[names->n])
		return fathom_fail_memory(w->reterr);
	names->numbers[names->n++] = i;
	return FATHOM_OK;
}

/* Finds the symbols of the numbers in [@from, @to) of w->order, which are of one module. */
static fathom_err search_module(struct work *w, struct names *names, size_t from, size_t to)
{
	const struct fathom_log_module *m =
		&w->filter->modules.modules.items[w->order.items[from].key];
	fathom_err err = FATHOM_OK;

	for (size_t i = from; !err && m->target && i < to; i++) {
		err = add_name(w, names, (size_t)w->order.items[i].value);
		if (!err && names->n && (names->n == NAMES_TOGETHER || i + 1 == to)) {
			err = search_names(w, m->target, names->names, names->numbers, names->n);
			names->n = 0;
		}
	}
	return err;
}

/* Finds the places of all symbols that numbers count from. */
static fathom_err find_symbols(struct work *w)
{
	const struct fathom_log_scan *s = &w->filter->scan;
	struct names names = { .n = 0 };
	fathom_err err;
	size_t n = 0;

	for (size_t i = 0; i < s->numbers.n; i++)
		n += s->numbers.items[i].base == FATHOM_LOG_SYMBOL;
	if (!n)
		return FATHOM_OK;
	if (n > NAMES_TOGETHER)
		n = NAMES_TOGETHER;
	err = order_by_module(w, s->numbers.n, module_of_number);
	if (err)
		return err;
	names.names = calloc(n, sizeof *names.names);
	names.numbers = calloc(n, sizeof *names.numbers);
	if (!names.names || !names.numbers)
		err = fathom_fail_memory(w->reterr);
	for (size_t from = 0, to; !err && from < w->order.n; from = to) {
		to = end_of_run(w, from);
		err = search_module(w, &names, from, to);
	}
	free(names.names);
	free(names.numbers);
	fathom_arena_deinit(&names.texts);
	return err;
}

/* Returns whether @address of @m begins a function, after a call. */
static bool is_ambiguous(const struct fathom_log_module *m, uint64_t address)
{
	struct fathom_log_code c;
	struct fathom_fde fde;

	fathom_log_code_of(m, &c);
	return c.arch && !fathom_unwind_tables_find(&m->target->stated->unwind, address, &fde) &&
	       fde.low == address && fathom_step_is_behind_call(c.arch, &c.memory, address);
}

/* Asks for the addresses of number @i. */
static fathom_err ask_number(struct work *w, size_t i)
{
	const struct fathom_log_number *n = &w->filter->scan.numbers.items[i];
	const struct fathom_log_module *m = &w->filter->modules.modules.items[w->modules[i]];
	const struct fathom_log_places_of *p = &w->symbols[i];
	enum fathom_reason reason;
	uint64_t address;

	if (n->code.size)
		return FATHOM_OK;
	if (!m->target)
		return n->is_any ? FATHOM_OK : ask(w, i, 0, (enum fathom_reason)m->reason);
	if (n->base == FATHOM_LOG_SYMBOL) {
		for (size_t k = 0; k < p->n; k++)
			FATHOM_TRY(ask(w, i, w->places.items[p->first + k], FATHOM_REASON_NONE));
		return p->n ? FATHOM_OK : ask(w, i, 0, FATHOM_REASON_NO_SUCH_SYMBOL);
	}
	reason = fathom_log_address_of(n, m, &address);
	/* Other lines told the module, its stack tells that it is another. */
	if (!reason && (n->is_misplaced || (n->is_placed && fathom_log_refutes(m, n, address))))
		reason = FATHOM_REASON_NO_BASE;
	/* It may be the start of a function, or the return address of the one before. */
	if (!reason && n->is_any && n->is_placed && !n->is_counter && n->kind == FATHOM_LOG_EXACT &&
	    is_ambiguous(m, address))
		return FATHOM_OK;
	return ask(w, i, address, reason);
}

/* Returns whether address @k that is asked for is of the numbered frame around that before it. */
static bool is_around(const struct work *w, size_t k)
{
	const struct asked *inner = &w->asked.items[k - 1];
	const struct asked *outer = &w->asked.items[k];
	const struct fathom_log_number *n = &w->filter->scan.numbers.items[outer->number];

	return inner->module == outer->module && inner->number + 1 == outer->number &&
	       !w->result->items[k - 1].reason && !w->result->items[k].reason && n->frame &&
	       fathom_log_is_around(n - 1, n) && n->line == n[-1].line + 1 &&
	       n->kind != FATHOM_LOG_EXACT && !n->symbol_size && !n->is_placed;
}

/* Counts the calls that lead to the frame inside of them, in modules that are known by path. */
static void count_links(struct work *w)
{
	for (size_t k = 1; k < w->asked.n; k++) {
		const struct asked *inner = &w->asked.items[k - 1];
		const struct asked *outer = &w->asked.items[k];
		const struct fathom_log_number *n = &w->filter->scan.numbers.items[outer->number];
		struct fathom_log_module *m = &w->filter->modules.modules.items[outer->module];
		struct fathom_log_code c;
		enum fathom_log_link link;

		if (!m->is_by_path || m->n_linked || !is_around(w, k))
			continue;
		fathom_log_code_of(m, &c);
		if (!c.arch)
			continue;
		link = fathom_log_link(m, &c, fathom_log_raise(n, &c, outer->address),
				       fathom_log_inside(n - 1, inner->address));
		m->n_linked += link == FATHOM_LOG_LINKED;
		m->n_not_linked += link == FATHOM_LOG_NOT_LINKED;
	}
}

/* Refutes the module of [@from, @to) of w->order, known by its name alone, if the log does. */
static void check_module(struct work *w, struct fathom_log_module *m, size_t from, size_t to)
{
	m->is_refuted |= m->is_by_path && !m->n_linked && m->n_not_linked;
	for (size_t i = from; m->is_by_path && !m->is_refuted && i < to; i++) {
		const size_t k = (size_t)w->order.items[i].value;
		const struct asked *a = &w->asked.items[k];

		const struct fathom_log_number *n = &w->filter->scan.numbers.items[a->number];

		m->is_refuted = !w->result->items[k].reason && !n->is_placed &&
				fathom_log_refutes(m, n, a->address);
	}
}

/* Says of the addresses [@from, @to) of w->order why @err left them without answers. */
static void fail_all(struct work *w, size_t from, size_t to, fathom_err err)
{
	const uint8_t reason =
		err == FATHOM_E_CHANGED ? FATHOM_REASON_CHANGED : FATHOM_REASON_NO_FILE;

	for (size_t i = from; i < to; i++) {
		struct fathom_log_address *a = &w->result->items[w->order.items[i].value];

		if (!a->reason)
			a->reason = reason;
	}
}

/* Asks for the addresses [@from, @to) of w->order, which are in one module, in one batch. */
static fathom_err answer_module(struct work *w, size_t from, size_t to)
{
	struct fathom_log_module *m = &w->filter->modules.modules.items[w->order.items[from].key];
	uint64_t *addresses = malloc((to - from) * sizeof *addresses);
	uint8_t *kinds = malloc(to - from);
	struct fathom_answers *answers = NULL;
	fathom_err err = FATHOM_OK;
	size_t n = 0;

	if (!addresses || !kinds)
		err = fathom_fail_memory(w->reterr);
	if (!err)
		check_module(w, m, from, to);
	for (size_t i = from; !err && i < to; i++) {
		const size_t k = (size_t)w->order.items[i].value;

		if (m->is_refuted ||
		    w->filter->scan.numbers.items[w->asked.items[k].number].is_refuted)
			w->result->items[k].reason = FATHOM_REASON_BUILD_ID_MISMATCH;
		if (w->result->items[k].reason)
			continue;
		addresses[n] = w->asked.items[k].address;
		kinds[n++] = w->asked.items[k].kind;
	}
	if (!err && n)
		err = fathom_symbolize(m->target, NULL, addresses, kinds, n, &answers, w->reterr);
	/* A file was cut, or a process has ended: the log goes on. */
	if (err && err != FATHOM_E_MEMORY && err != FATHOM_E_CANCELLED) {
		fail_all(w, from, to, err);
		err = FATHOM_OK;
	}
	if (answers)
		w->result->answers[w->result->n_answers++] = answers;
	for (size_t i = from, next = 0; !err && i < to; i++) {
		struct fathom_log_address *a = &w->result->items[w->order.items[i].value];

		if (a->reason)
			continue;
		a->answer = fathom_answers_get(answers, next++);
		a->target = m->target;
		if (!a->answer->symbol)
			a->reason = a->answer->reason;
	}
	free(addresses);
	free(kinds);
	return err;
}

static fathom_err answer_all(struct work *w)
{
	fathom_err err = order_by_module(w, w->asked.n, module_of_asked);
	size_t n = 0;

	for (size_t from = 0; !err && from < w->order.n; from = end_of_run(w, from))
		n++;
	if (!err && n) {
		w->result->answers = calloc(n, sizeof(struct fathom_answers *));
		if (!w->result->answers)
			err = fathom_fail_memory(w->reterr);
	}
	for (size_t from = 0, to; !err && from < w->order.n; from = to) {
		to = end_of_run(w, from);
		err = answer_module(w, from, to);
	}
	return err;
}

/* Answers all numbers of the scan. */
static fathom_err answer_numbers(struct work *w)
{
	const size_t n = w->filter->scan.numbers.n;

	w->modules = malloc((n + 1) * sizeof *w->modules);
	w->symbols = calloc(n + 1, sizeof *w->symbols);
	if (!w->modules || !w->symbols)
		return fathom_fail_memory(w->reterr);
	FATHOM_TRY(find_modules(w));
	FATHOM_TRY(fathom_log_context_apply(&w->filter->context, &w->filter->scan,
					    &w->filter->modules, w->modules, w->text, w->size,
					    w->reterr));
	if (!n)
		return FATHOM_OK;
	fathom_log_check_stacks(&w->filter->scan, &w->filter->modules, w->modules);
	fathom_log_guess(&w->filter->scan, &w->filter->modules, w->modules);
	fathom_log_mark_interrupted(&w->filter->scan, &w->filter->modules, w->modules,
				    &w->filter->interrupted);
	FATHOM_TRY(find_symbols(w));
	FATHOM_TRY(fathom_log_check_code(&w->filter->code_lines, &w->filter->scan,
					 &w->filter->modules, w->modules, w->symbols,
					 w->places.items, w->text, w->size, w->reterr));
	for (size_t i = 0; i < n; i++)
		FATHOM_TRY(ask_number(w, i));
	count_links(w);
	return answer_all(w);
}

size_t fathom_log_filter_ready(const struct fathom_log_filter *filter, const char *text,
			       size_t size)
{
	const struct fathom_target *target = filter->modules.target;

	/* A process, or its map, knows all addresses. */
	return fathom_log_ready(text, size,
				!filter->maps.n && (!target || target->kind == FATHOM_TARGET_FILE));
}

fathom_err fathom_log_filter_read(struct fathom_log_filter *filter, const char *text, size_t size,
				  struct fathom_log_addresses **ret_addresses,
				  struct fathom_errinfo *reterr)
{
	struct work w = { .filter = filter, .text = text, .size = size, .reterr = reterr };
	fathom_err err;

	w.result = calloc(1, sizeof *w.result);
	if (!w.result)
		return fathom_fail_memory(reterr);
	fathom_store_list_begin_call(&filter->modules.stores, filter->store_ms);
	fathom_log_modules_trim(&filter->modules);
	err = fathom_log_scan_lines(&filter->scan, text, size, reterr);
	if (!err)
		err = answer_numbers(&w);
	free(w.modules);
	free(w.symbols);
	fathom_array_free(&w.places);
	fathom_array_free(&w.asked);
	fathom_array_free(&w.order);
	if (err)
		fathom_log_addresses_free(w.result);
	else
		*ret_addresses = w.result;
	return err;
}

/* Copies @options to @f. */
static fathom_err take_options(struct fathom_log_filter *f, struct fathom *session,
			       const struct fathom_log_filter_options *options,
			       struct fathom_errinfo *reterr)
{
	struct fathom_log_filter_options o = { .size = sizeof o };
	struct fathom_target_info info;

	if (options && !FATHOM_OPTIONS_READ(options, &o, 0))
		return fathom_fail_options(reterr);
	f->modules.session = session;
	f->store_ms = o.store_timeout_ms;
	FATHOM_TRY(fathom_store_list_open(session, o.stores, &f->modules.stores, reterr));
	FATHOM_TRY(fathom_search_paths_create(session, o.where, &f->modules.paths, reterr));
	if (o.module_dirs) {
		f->modules.module_dirs = fathom_dirs_copy(o.module_dirs);
		if (!f->modules.module_dirs)
			return fathom_fail_memory(reterr);
	}
	if (o.maps)
		FATHOM_TRY(fathom_maps_read(o.maps, &f->maps, reterr));
	if (!o.target)
		return FATHOM_OK;
	f->modules.target = fathom_target_acquire(o.target);
	fathom_target_get_info(o.target, &info);
	f->modules.target_name =
		fathom_log_last_part(fathom_log_text(info.path, info.path + strlen(info.path)));
	return FATHOM_OK;
}

fathom_err fathom_log_filter_create(struct fathom *session,
				    const struct fathom_log_filter_options *options,
				    struct fathom_log_filter **ret_filter,
				    struct fathom_errinfo *reterr)
{
	struct fathom_log_filter *f = calloc(1, sizeof *f);
	fathom_err err = f ? take_options(f, session, options, reterr) : fathom_fail_memory(reterr);

	if (err)
		fathom_log_filter_destroy(f);
	else
		*ret_filter = f;
	return err;
}

void fathom_log_filter_destroy(struct fathom_log_filter *filter)
{
	if (!filter)
		return;
	fathom_log_scan_deinit(&filter->scan);
	fathom_log_modules_deinit(&filter->modules);
	fathom_log_context_deinit(&filter->context);
	fathom_log_code_lines_deinit(&filter->code_lines);
	fathom_maps_deinit(&filter->maps);
	free(filter);
}

size_t fathom_log_addresses_count(const struct fathom_log_addresses *addresses)
{
	return addresses->n;
}

const struct fathom_log_address *fathom_log_addresses_get(
	const struct fathom_log_addresses *addresses, size_t i)
{
	return &addresses->items[i];
}

void fathom_log_addresses_free(struct fathom_log_addresses *addresses)
{
	if (!addresses)
		return;
	for (size_t i = 0; i < addresses->n_answers; i++)
		fathom_answers_free(addresses->answers[i]);
	free(addresses->answers);
	fathom_arena_deinit(&addresses->texts);
	fathom_array_free(addresses);
	free(addresses);
}

const char *fathom_log_kind_name(enum fathom_log_kind kind)
{
	static const char *const names[] = { "exact", "return", "lowered" };

	return (size_t)kind < sizeof names / sizeof *names ? names[kind] : "";
}

const char *fathom_log_base_name(enum fathom_log_base base)
{
	static const char *const names[] = { "stated",       "file-offset", "first-mapping",
					     "code-mapping", "live",        "symbol",
					     "mapped" };

	return (size_t)base < sizeof names / sizeof *names ? names[base] : "";
}
