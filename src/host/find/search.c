/* SPDX-License-Identifier: MIT */
/* fathom_find(): from queries to matches. */
#include "host/find/search.h"

#include <stdlib.h>

#include "host/base/array.h"
#include "host/base/option_struct.h"
#include "host/base/progress.h"
#include "host/file/file.h"
#include "host/space/target.h"
#include "safe/base/sort.h"
#include "safe/base/text.h"

/* Default limit of matches per query; a note names it. */
#define DEFAULT_LIMIT 1000000
/* Most queries of one search. */
#define MAX_QUERIES (1u << 20)

struct fathom_match_array {
	FATHOM_ARRAY_OF(struct fathom_match);
};

struct fathom_matches {
	struct fathom_match_array items;
	struct fathom_arena arena;
};

void *fathom_find_alloc(struct fathom_find *f, size_t size)
{
	return fathom_budget_take(&f->budget, size) ? fathom_arena_alloc(&f->matches->arena, size)
						    : NULL;
}

const char *fathom_find_keep(struct fathom_find *f, struct fathom_str s)
{
	if (!s.data || !fathom_budget_take(&f->budget, s.size))
		return NULL;
	return fathom_arena_strdup(&f->matches->arena, s);
}

bool fathom_find_has_room(struct fathom_find *f, uint32_t query)
{
	if (f->n_matches[query] < f->limit)
		return true;
	f->queries[query].is_cut = true;
	return false;
}

bool fathom_find_add(struct fathom_find *f, const struct fathom_match *m)
{
	struct fathom_match_array *a = &f->matches->items;

	if (!fathom_budget_push(&f->budget, a, *m))
		return false;
	f->n_matches[m->query]++;
	return true;
}

/* Copies the caller's options; refuses fields that this version does not know. */
static fathom_err read_options(const struct fathom_find_options *options,
			       struct fathom_find_options *ret)
{
	const uint32_t known = FATHOM_FIND_REGEX | FATHOM_FIND_LITERAL | FATHOM_FIND_INLINED |
			       FATHOM_FIND_EXPORTED | FATHOM_FIND_LINKED;

	if (options &&
	    (!FATHOM_OPTIONS_READ(options, ret, known) || ret->reserved_tid || ret->tid < 0))
		return FATHOM_E_ARGUMENT;
	return FATHOM_OK;
}

/* Marks a query as bad and notes why: one bad query never fails a search. */
static void refuse_query(struct fathom_find *f, size_t i, const char *text,
			 struct fathom_errinfo *info)
{
	fathom_find_query_deinit(&f->queries[i]);
	f->queries[i].kind = FATHOM_QUERY_BAD;
	info->offset = 0;
	fathom_copy_cstr(info->file, sizeof info->file, *text ? text : "''");
	fathom_notes_add(f->notes, info);
}

/*
 * Notes queries that the default limit cut: their callers do not know that there are more matches.
 */
static void note_cut_queries(struct fathom_find *f, const char *const *texts)
{
	for (size_t i = 0; i < f->n_queries; i++) {
		struct fathom_errinfo info;

		if (!f->queries[i].is_cut)
			continue;
		(void)fathom_fail(&info, FATHOM_E_LIMIT, "", 0,
				  "more than 1,000,000 matches: the others are left out, unless "
				  "the query is made narrower or a larger limit is stated");
		fathom_copy_cstr(info.file, sizeof info.file, texts[i]);
		fathom_notes_add(f->notes, &info);
	}
}

static fathom_err parse_queries(struct fathom_find *f, const char *const *texts, size_t n)
{
	f->queries = calloc(n + 1, sizeof *f->queries);
	f->n_matches = calloc(n + 1, sizeof *f->n_matches);
	if (!f->queries || !f->n_matches)
		return FATHOM_E_MEMORY;
	for (size_t i = 0; i < n; i++) {
		struct fathom_errinfo info;
		const fathom_err err = fathom_find_query_parse(&f->queries[i], texts[i], f->flags,
							       &f->matches->arena, &info);

		f->n_queries = i + 1;
		if (err == FATHOM_E_MEMORY)
			return err;
		if (err)
			refuse_query(f, i, texts[i], &info);
	}
	return FATHOM_OK;
}

bool fathom_find_add_module(struct fathom_find *f, struct fathom_module *module, const char *path,
			    uint64_t bias)
{
	struct fathom_find_module *m;

	if (f->n_modules == f->cap_modules) {
		const size_t cap = 2 * f->cap_modules + 16;

		m = realloc(f->modules, cap * sizeof *m);
		if (!m)
			return false;
		f->modules = m;
		f->cap_modules = cap;
	}
	m = &f->modules[f->n_modules++];
	*m = (struct fathom_find_module){ .module = module, .bias = bias };
	m->order = FATHOM_NONE;
	m->path = fathom_arena_strdup(&f->matches->arena,
				      (struct fathom_str){ path, (uint32_t)strlen(path) });
	m->dynsym = fathom_module_dynsym(module);
	if (m->dynsym && m->dynsym->number != FATHOM_NONE)
		m->soname = fathom_find_keep(f, fathom_dynsym_soname(m->dynsym));
	return m->path && m->dynsym;
}

bool fathom_find_asks(const struct fathom_find *f, uint32_t query, uint32_t module)
{
	const struct fathom_find_query *q = &f->queries[query];
	const struct fathom_find_module *m = &f->modules[module];

	return !q->library.data || fathom_find_query_takes_module(q, m->path) ||
	       (m->soname && fathom_find_query_takes_module(q, m->soname));
}

/*
 * Returns whether only some segments of @m are mapped at @bias. Some programs map pages of a file a
 * second time (libffi its trampolines, V8 its builtins); these hold ordinary code.
 */
static bool is_part(struct fathom_view *v, const struct fathom_module *m, uint64_t bias)
{
	const struct fathom_image *image = &m->main->image;
	struct fathom_segment s;

	for (uint32_t i = 0; i < image->phnum; i++)
		if (fathom_image_segment(image, i, &s) && s.type == PT_LOAD && s.memsz &&
		    !fathom_view_holds(v, m, bias, s.vaddr + bias))
			return true;
	return false;
}

static bool add_module(const struct fathom_module_at *m, void *data)
{
	struct fathom_find *f = data;

	f->failed = !fathom_find_add_module(f, m->module, m->name, m->bias);
	if (!f->failed)
		f->modules[f->n_modules - 1].is_part = is_part(f->view, m->module, m->bias);
	return !f->failed;
}

uint64_t fathom_find_avma(const struct fathom_find_module *m, uint64_t svma)
{
	const struct fathom_object *o = m->module->main;
	const uint32_t section = m->sections ? fathom_object_section_at(o, svma) : 0;

	return section ? m->sections[section] + (svma - o->sections[section].base) : svma + m->bias;
}

bool fathom_find_is_there(struct fathom_find *f, const struct fathom_find_module *m, uint64_t svma)
{
	if (m->jit)
		return fathom_jit_search_holds(f->jit, m->jit - 1, svma);
	if (m->high)
		return svma + m->bias >= m->low && svma + m->bias < m->high;
	if (m->sections)
		return m->sections[fathom_object_section_at(m->module->main, svma)] != 0;
	return !m->is_part || fathom_view_holds(f->view, m->module, m->bias, svma + m->bias);
}

static enum fathom_table table_of(const struct fathom_find *f, const struct fathom_candidate *c)
{
	const struct fathom_find_module *m = &f->modules[c->module];
	const struct fathom_symbol_table *t = &m->module->symbols.table[c->table];

	if (m->jit)
		return FATHOM_TABLE_NONE;
	if (c->table == m->dynsym->number)
		return FATHOM_TABLE_DYNSYM;
	if (t->object == m->module->mini)
		return FATHOM_TABLE_MINIDEBUGINFO;
	if (t->object == m->module->go_symbols)
		return FATHOM_TABLE_GOPCLNTAB;
	if (t->object != m->module->main)
		return t->view.source == FATHOM_SOURCE_DYNSYM ? FATHOM_TABLE_DYNSYM
							      : FATHOM_TABLE_DEBUG;
	return FATHOM_TABLE_SYMTAB;
}

/* Returns the address in the file; in relocatable files, the offset in the section. */
static uint64_t module_address(const struct fathom_find_module *m, const struct fathom_candidate *c)
{
	if (m->jit)
		return FATHOM_NO_ADDRESS;
	return m->module->main->image.type == ET_REL ? c->symbol.value : c->svma;
}

/* Fills in the address and kind of @c. */
static void describe(const struct fathom_find *f, const struct fathom_candidate *c,
		     struct fathom_match *ret)
{
	const struct fathom_find_module *m = &f->modules[c->module];
	const bool is_stub = c->symbol.section == SHN_UNDEF;
	const bool is_absolute = c->symbol.section == FATHOM_SHN(SHN_ABS);

	*ret = (struct fathom_match){
		.address = is_absolute ? c->svma : fathom_find_avma(m, c->svma),
		.module_address = module_address(m, c),
		.size = is_stub ? 0 : c->symbol.size,
		.module = m->path,
		.query = c->query,
		.rank = c->rank,
		.type = c->symbol.type,
		.binding = c->symbol.bind,
		.table = (uint8_t)table_of(f, c),
		.source = is_stub ? FATHOM_SOURCE_PLT
				  : m->module->symbols.table[c->table].view.source,
		.flags = FATHOM_MATCH_ADDRESS |
			 (c->is_default && c->version.data ? FATHOM_MATCH_DEFAULT_VERSION : 0),
	};
}

/* Fills in the texts of @c's match; returns false without memory. */
static bool add_texts(struct fathom_find *f, const struct fathom_candidate *c,
		      struct fathom_find_name *name, struct fathom_match *m)
{
	struct fathom_str shown;

	m->linkage_name = fathom_find_keep(f, c->name);
	if (!m->linkage_name)
		return false;
	fathom_find_name_set(name, (struct fathom_str){ m->linkage_name, c->name.size });
	shown = fathom_find_name_shown(name);
	m->name = shown.data == m->linkage_name ? m->linkage_name : fathom_find_keep(f, shown);
	m->version = fathom_find_keep(f, c->version);
	return m->name && (m->version || !c->version.data);
}

/* Adds the matches of @c. */
static fathom_err emit(struct fathom_find *f, const struct fathom_candidate *c,
		       struct fathom_find_name *name)
{
	struct fathom_match m;

	describe(f, c, &m);
	if (f->yield == FATHOM_YIELD_MATCHES && !add_texts(f, c, name, &m))
		return FATHOM_E_MEMORY;
	return fathom_find_place(f, c, &m);
}

/* Returns whether @c becomes a match; @first has the first rank of its query and name. */
static bool is_yielded(const struct fathom_find *f, const struct fathom_candidate *first,
		       const struct fathom_candidate *c)
{
	return f->yield == FATHOM_YIELD_MATCHES || c == first ||
	       (first->symbol.bind == STB_LOCAL && c->symbol.bind == STB_LOCAL &&
		first->module == c->module);
}

fathom_err fathom_find_emit(struct fathom_find *f)
{
	const struct fathom_candidate *c = f->candidates.items;
	const struct fathom_candidate *first = c;
	struct fathom_find_name name = { 0 };
	fathom_err err = FATHOM_OK;

	for (size_t i = 0; !err && i < f->candidates.n; i++) {
		if (c[i].query != first->query || !str_equal(c[i].name, first->name))
			first = &c[i];
		if (is_yielded(f, first, &c[i]) && fathom_find_has_room(f, c[i].query))
			err = emit(f, &c[i], &name);
	}
	fathom_find_name_deinit(&name);
	return err;
}

/* Returns whether some module has a hash table of its names. */
static bool has_hash(const struct fathom_find *f)
{
	for (size_t i = 0; i < f->n_modules; i++)
		if (f->modules[i].dynsym->has_hash)
			return true;
	return false;
}

/* Returns whether only the first match is wanted, of names that the dynamic linker may know. */
static bool wants_first(const struct fathom_find *f)
{
	for (size_t i = 0; i < f->n_queries; i++)
		if (f->queries[i].kind != FATHOM_QUERY_NAME || f->queries[i].is_demangled)
			return false;
	return (f->limit == 1 || f->yield == FATHOM_YIELD_ADDRESSES) &&
	       !(f->flags & FATHOM_FIND_EXPORTED) && has_hash(f);
}

/*
 * Finds the symbols that the dynamic linker binds, in its own tables only: nothing in other tables
 * ranks higher. Sets whether every query has its match.
 */
static fathom_err find_first(struct fathom_find *f, const struct fathom_name_set *names,
			     bool *ret_found)
{
	const struct fathom_candidate *c;
	size_t answered = 0;

	FATHOM_TRY(fathom_find_tables(f, names, FATHOM_TABLES_DYNAMIC, 0));
	FATHOM_TRY(fathom_find_rank(f));
	c = f->candidates.items;
	for (size_t i = 0; i < f->candidates.n; i++) {
		if (c[i].rank || f->queries[c[i].query].is_answered)
			continue;
		f->queries[c[i].query].is_answered = true;
		answered++;
	}
	*ret_found = answered == f->n_queries;
	return FATHOM_OK;
}

/* Searches the tables @which, and those of JIT code, for @names. */
static fathom_err find_asked(struct fathom_find *f, struct fathom_name_set *names,
			     enum fathom_find_tables which)
{
	const uint32_t files = (uint32_t)f->n_modules;

	fathom_find_seek_jit(f);
	if (f->seeks_lists)
		fathom_name_keys_add(&names->exact, f->queries[f->n_queries].text,
				     (uint32_t)f->n_queries);
	FATHOM_TRY(fathom_find_tables(f, names, which, 0));
	FATHOM_TRY(fathom_find_add_jit(f));
	return fathom_find_tables(f, names, FATHOM_TABLES_ALL, files);
}

/* Searches demangled names for plain names without a matching linkage name. */
static fathom_err find_demangled(struct fathom_find *f)
{
	const struct fathom_candidate *c = f->candidates.items;
	bool *has_match = calloc(f->n_queries + 1, sizeof *has_match);
	struct fathom_name_set names = { 0 };
	fathom_err err = FATHOM_E_MEMORY;

	for (size_t i = 0; has_match && i < f->candidates.n; i++)
		has_match[c[i].query] = true;
	if (has_match && fathom_name_set_init(&names, f->queries, f->n_queries,
					      FATHOM_PASS_DEMANGLED, f->flags, has_match))
		err = fathom_find_tables(f, &names, FATHOM_TABLES_ALL, 0);
	fathom_name_set_deinit(&names);
	free(has_match);
	return err;
}

static fathom_err find_names(struct fathom_find *f, struct fathom_name_set *names)
{
	enum fathom_find_tables which = FATHOM_TABLES_ALL;
	bool found = false;

	if (wants_first(f)) {
		which = FATHOM_TABLES_OTHERS;
		FATHOM_TRY(find_first(f, names, &found));
	}
	if (found)
		return FATHOM_OK;
	FATHOM_TRY(find_asked(f, names, which));
	if (!(f->flags & FATHOM_FIND_LINKED))
		FATHOM_TRY(find_demangled(f));
	return fathom_find_rank(f);
}

fathom_err fathom_find_symbols(struct fathom_find *f)
{
	struct fathom_name_set names = { 0 };
	fathom_err err = FATHOM_E_MEMORY;

	if (fathom_name_set_init(&names, f->queries, f->n_queries, FATHOM_PASS_ASKED, f->flags,
				 NULL))
		err = find_names(f, &names);
	fathom_name_set_deinit(&names);
	return err ? err : fathom_find_emit(f);
}

bool fathom_find_needs_debug(const struct fathom_find *f, const struct fathom_find_query *q)
{
	return q->kind == FATHOM_QUERY_LINE || (f->flags & FATHOM_FIND_INLINED);
}

/* Returns why query @query has no match. */
static enum fathom_reason why_none(const struct fathom_find *f, uint32_t query)
{
	const struct fathom_find_query *q = &f->queries[query];
	const bool needs_debug = fathom_find_needs_debug(f, q);
	enum fathom_reason reason = FATHOM_REASON_NO_FILE;

	if (q->kind == FATHOM_QUERY_BAD)
		return FATHOM_REASON_BAD_ADDRESS;
	if (f->jit && fathom_jit_search_has_changed(f->jit))
		return FATHOM_REASON_CHANGED;
	/* Choose the best reason of any selected module. */
	for (uint32_t i = 0; i < f->n_modules; i++) {
		const struct fathom_module *m = f->modules[i].module;

		if (!fathom_find_asks(f, query, i))
			continue;
		if (needs_debug ? m->debug != NULL : m->symbols.n_tables != 0)
			return FATHOM_REASON_NO_SUCH_SYMBOL;
		reason = needs_debug ? m->no_debug : FATHOM_REASON_NO_SYMBOLS;
	}
	return reason;
}

static bool explain(struct fathom_find *f)
{
	/* A search for addresses needs no match that says "no such symbol". */
	if (f->yield == FATHOM_YIELD_ADDRESSES &&
	    !(f->jit && fathom_jit_search_has_changed(f->jit)))
		return true;
	for (uint32_t i = 0; i < f->n_queries; i++) {
		struct fathom_match m = { .query = i, .rank = FATHOM_NO_RANK };

		if (f->n_matches[i])
			continue;
		m.reason = (uint8_t)why_none(f, i);
		if (!fathom_find_add(f, &m))
			return false;
	}
	return true;
}

static bool is_ordered(const struct fathom_match *m, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (m[i].query < m[i - 1].query)
			return false;
	return true;
}

/* Sorts the matches by query, stably. */
static bool order_matches(struct fathom_find *f)
{
	struct fathom_match_array *a = &f->matches->items;
	const struct fathom_match *m = a->items;
	struct fathom_match *sorted;
	struct fathom_keyed *keyed;
	const uint64_t scratch = a->n * (sizeof *sorted + 2 * sizeof *keyed);
	bool done;

	if (is_ordered(m, a->n))
		return true;
	if (!fathom_budget_take(&f->budget, scratch))
		return false;
	sorted = malloc((a->n + 1) * sizeof *sorted);
	keyed = malloc((2 * a->n + 1) * sizeof *keyed);
	done = sorted && keyed;
	for (size_t i = 0; done && i < a->n; i++)
		keyed[i] = (struct fathom_keyed){ m[i].query, i };
	if (done) {
		fathom_sort_keyed(keyed, keyed + a->n, a->n);
		for (size_t i = 0; i < a->n; i++)
			sorted[i] = m[keyed[i].value];
		free(a->items);
		a->items = sorted;
		a->cap = a->n + 1;
	} else {
		free(sorted);
	}
	free(keyed);
	fathom_budget_give(&f->budget, scratch);
	return done;
}

fathom_err fathom_find_debug(struct fathom_find *f)
{
	bool lines = false;

	for (size_t i = 0; i < f->n_queries; i++)
		lines |= f->queries[i].kind == FATHOM_QUERY_LINE;
	if (f->flags & FATHOM_FIND_INLINED)
		FATHOM_TRY(fathom_find_inlined(f));
	return lines ? fathom_find_lines(f) : FATHOM_OK;
}

static fathom_err search(struct fathom_find *f)
{
	if (f->flags & FATHOM_FIND_INLINED)
		FATHOM_TRY(fathom_find_add_jit(f));
	else
		FATHOM_TRY(fathom_find_symbols(f));
	FATHOM_TRY(fathom_find_debug(f));
	return explain(f) && order_matches(f) ? FATHOM_OK : FATHOM_E_MEMORY;
}

static void note_unsettled(struct fathom_find *f)
{
	struct fathom_errinfo info;

	(void)fathom_fail(&info, FATHOM_E_TIMEOUT, "", 0,
			  "is at work: what it would answer is not known");
	fathom_errinfo_set_file(&info, "the process's dynamic linker");
	fathom_notes_add(f->notes, &info);
}

/* Reads the dynamic linker's data on the modules. */
static fathom_err read_runtime(struct fathom_find *f)
{
	struct fathom_runtime *r = &f->runtime;

	fathom_runtime_init(r, &f->view->memory, &f->budget, f->view->target->is_live);
	for (size_t i = 0; i < f->n_modules; i++)
		FATHOM_TRY(fathom_runtime_add(r, f->modules[i].module, f->modules[i].path,
					      f->modules[i].bias));
	FATHOM_TRY(fathom_runtime_read(r));
	for (size_t i = 0; i < f->n_modules; i++)
		f->modules[i].order = r->modules[i].order;
	if (r->is_unsettled)
		note_unsettled(f);
	return FATHOM_OK;
}

/* Searches all modules of the target; unreadable ones have no names. */
static fathom_err search_modules(struct fathom_find *f)
{
	FATHOM_TRY(fathom_view_modules(f->view, add_module, f));
	if (f->failed)
		return FATHOM_E_MEMORY;
	if (f->process)
		FATHOM_TRY(read_runtime(f));
	else
		f->modules[0].order = 0;
	return search(f);
}

/* Searches the target and keeps its modules open meanwhile. */
static fathom_err search_target(struct fathom_find *f, struct fathom_target *target,
				struct fathom_errinfo *reterr)
{
	fathom_err err;

	FATHOM_TRY(fathom_view_begin(target, FATHOM_VIEW_PLACES, &f->view, reterr));
	f->process = target->ops->jit ? target->ops->jit(f->view) : NULL;
	if (target->ops->names) {
		err = fathom_find_kernel(f);
		if (!err && !order_matches(f))
			err = FATHOM_E_MEMORY;
	} else {
		err = search_modules(f);
	}
	if (err)
		(void)fathom_view_fail(f->view, err, reterr);
	fathom_jit_search_end(f->jit);
	fathom_view_end(f->view);
	return err;
}

/* Returns the error of a search that exceeded the memory budget. */
static fathom_err fail_over(const char *const *queries, size_t n, struct fathom_errinfo *reterr)
{
	(void)fathom_fail_by(
		reterr, FATHOM_E_LIMIT, FATHOM_CAUSE_BUDGET,
		"what fits the query does not fit the memory budget: make it narrower, "
		"as by a library");
	if (reterr)
		fathom_copy_cstr(reterr->file, sizeof reterr->file,
				 n == 1 ? queries[0] : "all queries together");
	return FATHOM_E_LIMIT;
}

static void find_deinit(struct fathom_find *f)
{
	for (size_t i = 0; i < f->n_queries; i++)
		fathom_find_query_deinit(&f->queries[i]);
	fathom_runtime_deinit(&f->runtime);
	fathom_budget_free(&f->budget, &f->candidates);
	/* Matches are the caller's now and no longer count. */
	fathom_budget_give(&f->budget, atomic_load(&f->budget.counted));
	free(f->queries);
	free(f->n_matches);
	free(f->modules);
}

fathom_err fathom_find_run(struct fathom_target *target, const struct fathom_find_options *options,
			   enum fathom_find_yield yield, const char *const *queries, size_t n,
			   struct fathom_matches **ret_matches, struct fathom_errinfo *reterr)
{
	struct fathom_find f = { .notes = &target->notes, .yield = yield };
	struct fathom_call call;
	fathom_err err;

	if (n > MAX_QUERIES)
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				   "more queries than one search may have");
	if (options->tid && !target->ops->main_tid)
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				   "only processes and cores have threads to choose from");
	f.matches = calloc(1, sizeof *f.matches);
	if (!f.matches)
		return fathom_fail(reterr, FATHOM_E_MEMORY, "", 0, "out of memory");
	f.budget.session = target->session;
	f.flags = options->flags;
	f.limit = options->limit ? options->limit : DEFAULT_LIMIT;
	f.tid = options->tid;
	f.main_tid = -1;
	fathom_call_begin(&call, target->session);
	err = parse_queries(&f, queries, n);
	if (err)
		(void)fathom_fail(reterr, err, "", 0, "out of memory");
	else
		err = search_target(&f, target, reterr);
	err = fathom_target_end_call(target, err, reterr);
	if (err == FATHOM_E_MEMORY && f.budget.is_over)
		err = fail_over(queries, n, reterr);
	err = fathom_call_end(&call, err, reterr);
	if (!err && !options->limit)
		note_cut_queries(&f, queries);
	find_deinit(&f);
	if (err)
		fathom_matches_free(f.matches);
	else
		*ret_matches = f.matches;
	return err;
}

fathom_err fathom_find(struct fathom_target *target, const struct fathom_find_options *options,
		       const char *const *queries, size_t n, struct fathom_matches **ret_matches,
		       struct fathom_errinfo *reterr)
{
	struct fathom_find_options o = { .size = sizeof o };

	if (read_options(options, &o))
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				   "options that this version does not know");
	return fathom_find_run(target, &o, FATHOM_YIELD_MATCHES, queries, n, ret_matches, reterr);
}

void fathom_matches_free(struct fathom_matches *matches)
{
	if (!matches)
		return;
	fathom_array_free(&matches->items);
	fathom_arena_deinit(&matches->arena);
	free(matches);
}

size_t fathom_matches_count(const struct fathom_matches *matches)
{
	return matches->items.n;
}

const struct fathom_match *fathom_matches_get(const struct fathom_matches *matches, size_t i)
{
	return matches->items.items + i;
}

const char *fathom_table_name(enum fathom_table table)
{
	static const char *const names[] = { "",      "dynsym",   "symtab",   "minidebuginfo",
					     "debug", "kallsyms", "gopclntab" };

	return (unsigned)table < sizeof names / sizeof *names ? names[table] : "";
}
