/* SPDX-License-Identifier: MIT */
/*
 * Finds names in the running kernel. kallsyms has names and addresses; sizes and types come from
 * the files of the image and the modules, if found. Names that only the image's file has (a kernel
 * may keep no names of data), lines and inlined copies are found there.
 */
#include <stdlib.h>

#include "host/base/array.h"
#include "host/find/search.h"
#include "host/space/kernel/locate.h"

/* Maximum age of a kallsyms table for finding addresses of names. */
#define NAMES_STAY_NS INT64_C(1000000000)

/*
 * Up to this many symbols of one file are found by passes over its tables; more by an
 * index.
 */
#define FEW 4

/* Search state of an owner of symbols (image or module), by its number. */
struct use {
	uint32_t looked_up; /* symbols looked up */
	bool is_added;      /* its file was added to the search */
};

/* A symbol that fits a query. */
struct candidate {
	uint32_t query;
	uint32_t owner;
	size_t item; /* index in kallsyms */
	struct fathom_kallsym_facts facts;
};

struct candidates {
	FATHOM_ARRAY_OF(struct candidate);
};

struct search {
	struct fathom_find *f;
	struct fathom_kernel_view *view;
	const struct fathom_kernel_image *image;
	const struct fathom_kallsyms *symbols;
	struct fathom_kernel_owners *owners; /* of the view */
	struct use *uses;                    /* of each owner */
	struct candidates candidates;
	struct fathom_bytes_array text; /* a name with a NUL */
	struct fathom_find_name name;   /* text as a name */
};

static void note_owners(const struct search *s)
{
	struct fathom_errinfo info;

	(void)fathom_fail(&info, FATHOM_E_UNSUPPORTED, "", 0,
			  "more than 4,096 modules: the symbols of others are not found");
	fathom_errinfo_set_file(&info, "/proc/kallsyms");
	fathom_notes_add(s->f->notes, &info);
}

/* Finds the number of the owner called @name; FATHOM_NONE if there are too many. */
static bool use_owner(struct search *s, struct fathom_str name, uint32_t *ret)
{
	if (fathom_kernel_owners_use(s->owners, name, ret))
		return false;
	if (*ret == FATHOM_NONE)
		note_owners(s);
	return true;
}

/* Opens the file of owner @i, if it has one; returns NULL without memory. */
static struct fathom_kernel_owner *open_owner(const struct search *s, uint32_t i)
{
	struct fathom_kernel_owner *o;

	return fathom_kernel_owners_open(s->owners, i, &o) ? NULL : o;
}

/*
 * Adds item @i as a candidate of @query if the query selects its owner. Returns false without
 * memory.
 */
static bool take_item(struct search *s, size_t i, uint32_t query)
{
	const struct fathom_find_query *q = &s->f->queries[query];
	struct candidate found = { .query = query, .item = i };

	/* The kernel's symbols have no versions. */
	if (q->version.data || q->is_default || q->is_answered)
		return true;
	fathom_kallsyms_describe(s->symbols, i, &found.facts);
	if ((s->f->flags & FATHOM_FIND_EXPORTED) && found.facts.bind == STB_LOCAL)
		return true;
	if (!use_owner(s, found.facts.owner, &found.owner))
		return false;
	if (found.owner == FATHOM_NONE ||
	    !fathom_find_query_takes_module(q, s->owners->items[found.owner]->path))
		return true;
	return fathom_budget_push(&s->f->budget, &s->candidates, found);
}

/* Sets the name to compare with patterns, with a NUL. Returns false without memory. */
static bool set_name(struct search *s, struct fathom_str name)
{
	s->text.n = 0;
	if (!fathom_array_room(&s->text, (size_t)name.size + 1))
		return false;
	memcpy(s->text.items, name.data, name.size);
	s->text.items[name.size] = '\0';
	fathom_find_name_set(&s->name, (struct fathom_str){ s->text.items, name.size });
	return true;
}

/* An item being compared with queries. */
struct compared {
	struct search *s;
	size_t item;
};

static bool take_query(void *data, uint32_t query)
{
	const struct compared *c = data;

	return take_item(c->s, c->item, query);
}

/* Compares the name of item @i with the exact names of @keys. Returns false without memory. */
static bool compare_exact(struct search *s, const struct fathom_name_keys *keys, size_t i)
{
	const struct fathom_kallsym *item = &s->symbols->items[i];
	const struct fathom_str name = { item->name, item->name_size };

	for (uint32_t k = fathom_name_keys_first(keys, name.data, name.size); k;
	     k = fathom_name_keys_next(keys, k)) {
		const uint32_t query = keys->item[k - 1].value;

		if (str_equal(s->f->queries[query].text, name) && !take_item(s, i, query))
			return false;
	}
	return true;
}

/* Compares the name of item @i with the other queries of @names. Returns false without memory. */
static bool compare_others(struct search *s, const struct fathom_name_set *names, size_t i)
{
	const struct fathom_kallsym *item = &s->symbols->items[i];
	const struct fathom_str name = { item->name, item->name_size };
	struct compared c = { s, i };

	return !name.size || !fathom_name_set_may_fit(names, name.data) ||
	       (set_name(s, name) &&
		fathom_name_set_compare(names, &s->name, false, take_query, &c));
}

/* Compares all kallsyms names with @names and marks queries with a candidate as answered. */
static bool compare_all(struct search *s, const struct fathom_name_set *names)
{
	const struct fathom_name_keys exact = names->exact;
	const struct candidate *c;

	for (size_t i = 0; exact.n && i < s->symbols->n; i++)
		if (!compare_exact(s, &exact, i))
			return false;
	for (size_t i = 0; fathom_name_set_has_others(names) && i < s->symbols->n; i++)
		if (!compare_others(s, names, i))
			return false;
	c = s->candidates.items;
	for (size_t i = 0; i < s->candidates.n; i++)
		s->f->queries[c[i].query].is_answered = true;
	return true;
}

static unsigned quality(const struct candidate *c)
{
	return c->facts.bind == STB_GLOBAL ? 0 : c->facts.bind == STB_WEAK ? 1 : 2;
}

/* Sorts by query and name; then the image before modules, and global symbols first. */
static int compare_candidates(const void *pa, const void *pb)
{
	const struct candidate *a = pa;
	const struct candidate *b = pb;
	int order = u64_compare(a->query, b->query);

	if (!order)
		order = str_compare(a->facts.name, b->facts.name);
	if (!order)
		order = u64_compare(a->facts.owner.size != 0, b->facts.owner.size != 0);
	if (!order)
		order = u64_compare(quality(a), quality(b));
	if (!order)
		order = u64_compare(a->facts.avma, b->facts.avma);
	return order ? order : str_compare(a->facts.owner, b->facts.owner);
}

/* Returns whether @symbol of the owner's file is at @avma. */
static bool is_at(const struct search *s, const struct fathom_kernel_owner *o,
		  const struct fathom_symbol *symbol, uint64_t avma)
{
	if (!o->sections)
		return symbol->value + s->image->bias == avma;
	return symbol->section < o->holder.module->main->n_sections &&
	       o->sections[symbol->section] && symbol->value + o->sections[symbol->section] == avma;
}

/* Finds the symbol called @name at @avma in table @t of the file of owner @i. */
static bool find_in_table(const struct search *s, uint32_t i, uint32_t t,
			  const struct fathom_kallsym_facts *facts, struct fathom_symbol *ret)
{
	const struct fathom_kernel_owner *o = s->owners->items[i];
	const struct fathom_symtab *view = &o->holder.module->symbols.table[t].view;
	const bool is_few = s->uses[i].looked_up <= FEW;
	const struct fathom_name_index *x =
		is_few ? NULL : fathom_module_names(o->holder.module, t);

	if (x) {
		for (uint32_t k = fathom_name_index_first(x, facts->name); k; k = x->next[k]) {
			fathom_symtab_get(view, k, ret);
			if (is_at(s, o, ret, facts->avma) &&
			    str_equal(fathom_symtab_name(view, ret), facts->name))
				return true;
		}
		return false;
	}
	/* Without memory for an index, kallsyms must suffice. */
	for (uint32_t k = 1; is_few && k < view->count; k++) {
		fathom_symtab_get(view, k, ret);
		if (is_at(s, o, ret, facts->avma) &&
		    str_equal(fathom_symtab_name(view, ret), facts->name))
			return true;
	}
	return false;
}

/* Finds the symbol of @facts in the file of owner @i. */
static bool find_in_file(const struct search *s, uint32_t i,
			 const struct fathom_kallsym_facts *facts, struct fathom_symbol *ret)
{
	const struct fathom_module *m = s->owners->items[i]->holder.module;

	s->uses[i].looked_up += s->uses[i].looked_up <= FEW;
	for (uint32_t t = 0; t < m->symbols.n_tables; t++)
		if (find_in_table(s, i, t, facts, ret))
			return true;
	return false;
}

/* Returns the ELF address of @avma in the owner's file. */
static uint64_t module_address(const struct search *s, const struct fathom_kernel_owner *o,
			       uint64_t avma)
{
	uint32_t section;

	if (!o->holder.module)
		return FATHOM_NO_ADDRESS;
	/* Marker symbols may be at its end. */
	if (!o->sections)
		return avma >= s->image->low && avma <= s->image->high ? avma - s->image->bias
								       : FATHOM_NO_ADDRESS;
	section = fathom_kernel_section_at(o->holder.module->main, o->sections, avma);
	return section ? avma - o->sections[section] : FATHOM_NO_ADDRESS;
}

/*
 * Fills the match of @c with its texts and the facts of the owner's file. Returns false without
 * memory.
 */
static bool add_texts(struct search *s, const struct candidate *c, struct fathom_match *m)
{
	const char *path = s->owners->items[c->owner]->path;
	const struct fathom_kernel_owner *o = open_owner(s, c->owner);
	struct fathom_symbol symbol;

	m->size = fathom_kallsyms_size(s->symbols, c->item);
	m->linkage_name = fathom_find_keep(s->f, c->facts.name);
	m->module = fathom_find_keep(s->f, (struct fathom_str){ path, (uint32_t)strlen(path) });
	if (!m->linkage_name || !m->module || !o || !set_name(s, c->facts.name))
		return false;
	m->module_address = module_address(s, o, m->address);
	if (m->module_address != FATHOM_NO_ADDRESS &&
	    find_in_file(s, c->owner, &c->facts, &symbol)) {
		m->size = symbol.size;
		m->type = symbol.type == STT_NOTYPE ? m->type : symbol.type;
		m->binding = symbol.bind;
	}
	m->name = fathom_find_keep(s->f, fathom_find_name_shown(&s->name));
	return m->name != NULL;
}

static bool emit(struct search *s, const struct candidate *c, uint32_t rank)
{
	struct fathom_match m = {
		.address = c->facts.avma,
		.query = c->query,
		.rank = rank,
		.type = c->facts.type,
		.binding = c->facts.bind,
		.table = FATHOM_TABLE_KALLSYMS,
		.source = FATHOM_SOURCE_KALLSYMS,
		.flags = FATHOM_MATCH_ADDRESS,
	};

	return (s->f->yield == FATHOM_YIELD_ADDRESSES || add_texts(s, c, &m)) &&
	       fathom_find_add(s->f, &m);
}

/* Returns whether @c becomes a match; @first has the first rank of its query and name. */
static bool is_yielded(const struct search *s, const struct candidate *first,
		       const struct candidate *c)
{
	return s->f->yield == FATHOM_YIELD_MATCHES || c == first ||
	       (first->facts.bind == STB_LOCAL && c->facts.bind == STB_LOCAL &&
		first->owner == c->owner);
}

/* Turns the candidates into matches without duplicates. Returns false without memory. */
static bool emit_all(struct search *s)
{
	const struct candidate *c = s->candidates.items;
	const struct candidate *first = c;
	uint32_t rank = 0;

	if (s->candidates.n)
		qsort(s->candidates.items, s->candidates.n, sizeof *c, compare_candidates);
	for (size_t i = 0; i < s->candidates.n; i++) {
		const bool again = i && c[i].query == c[i - 1].query &&
				   str_equal(c[i].facts.name, c[i - 1].facts.name);

		if (i && !compare_candidates(&c[i], &c[i - 1]))
			continue;
		/* No dynamic linker binds kernel names, so rank 0 is not used. */
		rank = again ? rank + 1 : 1;
		first = again ? first : &c[i];
		if (is_yielded(s, first, &c[i]) && fathom_find_has_room(s->f, c[i].query) &&
		    !emit(s, &c[i], rank))
			return false;
	}
	return true;
}

/*
 * Returns whether a query selects @path: one that needs debug information if @debug, else an
 * unanswered one.
 */
static bool is_asked(const struct fathom_find *f, const char *path, bool debug)
{
	for (size_t i = 0; i < f->n_queries; i++) {
		const struct fathom_find_query *q = &f->queries[i];

		if (q->kind != FATHOM_QUERY_BAD && !q->is_answered &&
		    fathom_find_needs_debug(f, q) == debug &&
		    fathom_find_query_takes_module(q, path))
			return true;
	}
	return false;
}

/* Adds the file of owner @i, if there is one, to the search. Returns false without memory. */
static bool add_file(struct search *s, uint32_t i)
{
	const struct fathom_kernel_owner *o = open_owner(s, i);
	struct fathom_find *f = s->f;
	struct fathom_find_module *m;

	if (!o)
		return false;
	if (!o->holder.module || s->uses[i].is_added)
		return true;
	s->uses[i].is_added = true;
	if (!fathom_find_add_module(f, o->holder.module, o->path, i ? 0 : s->image->bias))
		return false;
	m = &f->modules[f->n_modules - 1];
	m->is_part = true;
	m->low = i ? 0 : s->image->low;
	m->high = i ? 0 : s->image->high;
	m->sections = o->sections;
	return true;
}

/* Compares all names with the queries of pass @which. */
static fathom_err pass(struct search *s, enum fathom_find_pass which)
{
	struct fathom_find *f = s->f;
	struct fathom_name_set names = { 0 };
	const bool done =
		fathom_name_set_init(&names, f->queries, f->n_queries, which, f->flags, NULL) &&
		compare_all(s, &names);

	fathom_name_set_deinit(&names);
	return done ? FATHOM_OK : FATHOM_E_MEMORY;
}

/* Finds symbols in kallsyms, then in the image's file what kallsyms lacks. */
static fathom_err find_names(struct search *s)
{
	struct fathom_find *f = s->f;

	if (!(f->flags & FATHOM_FIND_INLINED)) {
		FATHOM_TRY(pass(s, FATHOM_PASS_ASKED));
		if (!(f->flags & FATHOM_FIND_LINKED))
			FATHOM_TRY(pass(s, FATHOM_PASS_DEMANGLED));
	}
	if (!emit_all(s))
		return FATHOM_E_MEMORY;
	if (!is_asked(f, s->owners->items[0]->path, false))
		return FATHOM_OK;
	if (!add_file(s, 0))
		return FATHOM_E_MEMORY;
	return f->n_modules ? fathom_find_symbols(f) : FATHOM_OK;
}

/* Keeps only functions with a unique name among the sorted candidates. */
static void keep_unique(struct fathom_find *f)
{
	struct fathom_candidate *c = f->candidates.items;
	size_t kept = 0;
	size_t end;

	for (size_t i = 0; i < f->candidates.n; i = end) {
		for (end = i + 1; end < f->candidates.n && c[end].query == c[i].query;)
			end++;
		if (end - i > 1 || c[i].symbol.type != STT_FUNC)
			continue;
		f->queries[c[i].query].is_answered = true;
		c[kept++] = c[i];
	}
	f->candidates.n = kept;
}

/*
 * Finds addresses in the image's file, which has the same functions as kallsyms but is faster to
 * read. Sets *@ret_found if all names were found.
 */
static fathom_err find_in_image(struct search *s, bool *ret_found)
{
	struct fathom_name_set names = { 0 };
	struct fathom_find *f = s->f;
	fathom_err err = FATHOM_E_MEMORY;

	*ret_found = false;
	if (f->yield != FATHOM_YIELD_ADDRESSES || !s->image->module)
		return FATHOM_OK;
	if (add_file(s, 0) && fathom_name_set_init(&names, f->queries, f->n_queries,
						   FATHOM_PASS_ASKED, FATHOM_FIND_LINKED, NULL))
		err = fathom_find_tables(f, &names, FATHOM_TABLES_ALL, 0);
	if (!err)
		err = fathom_find_rank(f);
	fathom_name_set_deinit(&names);
	if (err)
		return err;
	keep_unique(f);
	*ret_found = f->candidates.n == f->n_queries;
	err = fathom_find_emit(f);
	f->candidates.n = 0;
	return err;
}

/* Finds lines and inlined copies in all selected files. */
static fathom_err find_in_debug(struct search *s)
{
	struct fathom_find *f = s->f;
	bool any = false;

	for (uint32_t i = 0; i < s->owners->n; i++) {
		if (!is_asked(f, s->owners->items[i]->path, true))
			continue;
		any = true;
		if (!add_file(s, i))
			return FATHOM_E_MEMORY;
	}
	if (!any)
		return FATHOM_OK;
	if (!s->image->module && is_asked(f, s->owners->items[0]->path, true))
		fathom_kernel_note_no_image(s->view->kernel);
	return fathom_find_debug(f);
}

/* Returns why query @q has no match. */
static enum fathom_reason why_none(const struct search *s, const struct fathom_find_query *q)
{
	enum fathom_reason reason = FATHOM_REASON_NO_FILE;

	if (q->kind == FATHOM_QUERY_BAD)
		return FATHOM_REASON_BAD_ADDRESS;
	if (s->view->view.hidden)
		return s->view->view.hidden;
	for (uint32_t i = 0; i < s->owners->n; i++) {
		const struct fathom_kernel_owner *o = s->owners->items[i];
		const struct fathom_module *file = o->holder.module;

		if (!fathom_find_query_takes_module(q, o->path))
			continue;
		if (!fathom_find_needs_debug(s->f, q) || (file && file->debug))
			return FATHOM_REASON_NO_SUCH_SYMBOL;
		if (reason == FATHOM_REASON_NO_FILE)
			reason = file ? file->no_debug : o->reason;
	}
	return reason;
}

static bool explain(struct search *s)
{
	if (s->f->yield == FATHOM_YIELD_ADDRESSES && !s->view->view.hidden)
		return true;
	for (uint32_t i = 0; i < s->f->n_queries; i++) {
		struct fathom_match m = { .query = i, .rank = FATHOM_NO_RANK };

		if (s->f->n_matches[i])
			continue;
		m.reason = (uint8_t)why_none(s, &s->f->queries[i]);
		if (!fathom_find_add(s->f, &m))
			return false;
	}
	return true;
}

/* Lists the owners of symbols. Returns false without memory. */
static bool list_owners(struct search *s)
{
	const struct fathom_kallsym *last = NULL;
	struct use *uses;
	uint32_t number;

	for (size_t i = s->symbols->n_image; i < s->symbols->n; i++) {
		const struct fathom_kallsym *item = &s->symbols->items[i];
		const struct fathom_str name = { item->name + item->name_size + 2,
						 item->owner_size };

		/* Symbols of one owner are adjacent. */
		if (last && str_equal(name, (struct fathom_str){ last->name + last->name_size + 2,
								 last->owner_size }))
			continue;
		last = item;
		if (!use_owner(s, name, &number))
			return false;
	}
	uses = realloc(s->uses, s->owners->n * sizeof *uses);
	if (!uses)
		return false;
	memset(uses + 1, 0, (s->owners->n - 1) * sizeof *uses);
	s->uses = uses;
	return true;
}

static fathom_err search(struct search *s)
{
	const bool stays = s->f->yield == FATHOM_YIELD_ADDRESSES;
	struct fathom_kernel_view *v = s->view;
	bool found;

	s->image = fathom_kernel_view_image(v);
	s->uses = calloc(1, sizeof *s->uses);
	if (!s->image || !s->uses)
		return FATHOM_E_MEMORY;
	FATHOM_TRY(find_in_image(s, &found));
	if (found)
		return FATHOM_OK;
	FATHOM_TRY(fathom_kernel_take_table(v->kernel, v->began_ns - (stays ? NAMES_STAY_NS : 0),
					    UINT64_MAX, &v->table, &v->view.failed));
	s->symbols = &v->table->symbols;
	if (!list_owners(s))
		return FATHOM_E_MEMORY;
	FATHOM_TRY(find_names(s));
	return find_in_debug(s);
}

static void search_deinit(struct search *s)
{
	free(s->uses);
	fathom_budget_free(&s->f->budget, &s->candidates);
	fathom_array_free(&s->text);
	fathom_find_name_deinit(&s->name);
}

fathom_err fathom_find_kernel(struct fathom_find *f)
{
	struct fathom_kernel_view *v = (struct fathom_kernel_view *)f->view;
	struct search s = { .f = f, .view = v, .owners = &v->owners };
	fathom_err err = f->view->hidden ? FATHOM_OK : search(&s);

	if (!err && !explain(&s))
		err = FATHOM_E_MEMORY;
	search_deinit(&s);
	return err;
}
