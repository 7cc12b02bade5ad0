/* SPDX-License-Identifier: MIT */
/*
 * Finding names in the running kernel. Its own table, kallsyms, says what there is and where; sizes
 * and types are those of the image's and the modules' files, where these are found. What only the
 * image's file knows (a kernel may keep no names of data) is looked for there, and so are lines and
 * inlined copies.
 */
#include <stdlib.h>

#include "host/find/search.h"
#include "host/target/kernel/locate.h"

/* So many symbols of one file are looked for in its tables by passes; more, by an index. */
#define FEW 4

/* What a search keeps of an owner of symbols, by its number. */
struct use {
	uint32_t looked_up; /* symbols */
	bool is_added;      /* its file, to what is searched */
};

/* A symbol that fits a query. */
struct hit {
	uint32_t query;
	uint32_t owner;
	struct fathom_kallsym_facts facts;
};

struct search {
	struct fathom_find *f;
	struct fathom_kernel_view *view;
	const struct fathom_kernel_image *image;
	const struct fathom_kallsyms *symbols;
	struct fathom_kernel_owners *owners; /* of the view */
	struct use *uses;                    /* of each of them */
	uint32_t *exact;                     /* queries of exact names, by name */
	size_t n_exact;
	uint32_t *patterns; /* those that look at every name */
	size_t n_patterns;
	struct fathom_array hits;     /* struct hit */
	struct fathom_array text;     /* char: a name with a NUL */
	struct fathom_find_name name; /* of that */
};

static void note_owners(const struct search *s)
{
	struct fathom_errinfo info;

	(void)fathom_fail(&info, FATHOM_E_UNSUPPORTED, "", 0,
			  "more than 4,096 modules: the symbols of others are not found");
	fathom_errinfo_set_file(&info, "/proc/kallsyms");
	fathom_notes_add(s->f->notes, &info);
}

/* Finds the number of the owner called @name, FATHOM_NONE when there are too many. */
static bool use_owner(struct search *s, struct fathom_str name, uint32_t *ret)
{
	if (fathom_kernel_owners_use(s->owners, name, ret))
		return false;
	if (*ret == FATHOM_NONE)
		note_owners(s);
	return true;
}

/* Opens the file of owner @i, if it has one; NULL without memory. */
static struct fathom_kernel_owner *open_owner(const struct search *s, uint32_t i)
{
	struct fathom_kernel_owner *o;

	return fathom_kernel_owners_open(s->owners, i, &o) ? NULL : o;
}

static int compare_exact(const void *pa, const void *pb, void *data)
{
	const struct fathom_find_query *queries = data;
	const uint32_t a = *(const uint32_t *)pa;
	const uint32_t b = *(const uint32_t *)pb;
	const int order = str_compare(queries[a].text, queries[b].text);

	return order ? order : u64_compare(a, b);
}

/* Whether names can answer the query: the kernel's symbols have no versions. */
static bool is_of_names(const struct fathom_find *f, const struct fathom_find_query *q)
{
	return q->kind != FATHOM_QUERY_BAD && !fathom_find_needs_debug(f, q) && !q->is_answered &&
	       !q->version.data && !q->is_default;
}

/* Sorts the queries of names; @demangled: as names that nothing is linked as. */
static void sort_queries(struct search *s, bool demangled)
{
	const struct fathom_find *f = s->f;

	s->n_exact = 0;
	s->n_patterns = 0;
	for (uint32_t i = 0; i < f->n_queries; i++) {
		const struct fathom_find_query *q = &f->queries[i];

		if (!is_of_names(f, q))
			continue;
		if (q->kind != FATHOM_QUERY_NAME || q->is_demangled || demangled)
			s->patterns[s->n_patterns++] = i;
		else
			s->exact[s->n_exact++] = i;
	}
	qsort_r(s->exact, s->n_exact, sizeof *s->exact, compare_exact, f->queries);
}

/* The number of the first exact query, in order, whose name is not before @name. */
static size_t first_exact(const struct search *s, struct fathom_str name)
{
	size_t low = 0;
	size_t high = s->n_exact;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (str_compare(s->f->queries[s->exact[mid]].text, name) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Takes item @i as a match of @query, if that asks its owner. False without memory. */
static bool take(struct search *s, size_t i, uint32_t query)
{
	struct hit hit = { .query = query };

	fathom_kallsyms_describe(s->symbols, i, &hit.facts);
	if ((s->f->flags & FATHOM_FIND_EXPORTED) && hit.facts.bind == STB_LOCAL)
		return true;
	if (!use_owner(s, hit.facts.owner, &hit.owner))
		return false;
	if (hit.owner == FATHOM_NONE ||
	    !fathom_find_query_takes_module(&s->f->queries[query],
					    s->owners->items[hit.owner]->path))
		return true;
	if (!fathom_budget_reserve(&s->f->budget, &s->hits, sizeof hit, 1))
		return false;
	((struct hit *)s->hits.data)[s->hits.n++] = hit;
	return true;
}

/* Takes @name as the one that patterns are compared with: with a NUL. False without memory. */
static bool set_name(struct search *s, struct fathom_str name)
{
	s->text.n = 0;
	if (!fathom_array_reserve(&s->text, 1, (size_t)name.size + 1))
		return false;
	memcpy(s->text.data, name.data, name.size);
	((char *)s->text.data)[name.size] = '\0';
	fathom_find_name_set(&s->name, (struct fathom_str){ s->text.data, name.size });
	return true;
}

/* Compares the name of item @i with all queries. False without memory. */
static bool compare_item(struct search *s, size_t i)
{
	const struct fathom_kallsym *item = &s->symbols->items[i];
	const struct fathom_str name = { item->name, item->name_size };

	for (size_t k = first_exact(s, name);
	     k < s->n_exact && str_equal(s->f->queries[s->exact[k]].text, name); k++)
		if (!take(s, i, s->exact[k]))
			return false;
	if (s->n_patterns && !set_name(s, name))
		return false;
	for (size_t k = 0; k < s->n_patterns; k++)
		if (fathom_find_query_takes_name(&s->f->queries[s->patterns[k]], &s->name) &&
		    !take(s, i, s->patterns[k]))
			return false;
	return true;
}

/* Compares all names with the queries, which are then answered where something fits. */
static bool compare_all(struct search *s, bool demangled)
{
	const struct hit *hit;

	sort_queries(s, demangled);
	if (!s->n_exact && !s->n_patterns)
		return true;
	for (size_t i = 0; i < s->symbols->n; i++)
		if (!compare_item(s, i))
			return false;
	hit = s->hits.data;
	for (size_t i = 0; i < s->hits.n; i++)
		s->f->queries[hit[i].query].is_answered = true;
	return true;
}

static unsigned quality(const struct hit *h)
{
	return h->facts.bind == STB_GLOBAL ? 0 : h->facts.bind == STB_WEAK ? 1 : 2;
}

/* By query and name; of these, what is exported first, and the image before modules. */
static int compare_hits(const void *pa, const void *pb)
{
	const struct hit *a = pa;
	const struct hit *b = pb;
	int order = u64_compare(a->query, b->query);

	if (!order)
		order = str_compare(a->facts.name, b->facts.name);
	if (!order)
		order = u64_compare(quality(a), quality(b));
	if (!order)
		order = u64_compare(a->facts.owner.size != 0, b->facts.owner.size != 0);
	if (!order)
		order = u64_compare(a->facts.avma, b->facts.avma);
	return order ? order : str_compare(a->facts.owner, b->facts.owner);
}

/* Whether @symbol of the owner's file is what stands at @avma. */
static bool is_at(const struct search *s, const struct fathom_kernel_owner *o,
		  const struct fathom_symbol *symbol, uint64_t avma)
{
	if (!o->sections)
		return symbol->value + s->image->bias == avma;
	return symbol->section < o->holder.module->main->n_sections &&
	       o->sections[symbol->section] && symbol->value + o->sections[symbol->section] == avma;
}

/* Looks for the symbol called @name at @avma in table @t of the file of owner @i. */
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
	/* Without memory for an index, kallsyms has to do. */
	for (uint32_t k = 1; is_few && k < view->count; k++) {
		fathom_symtab_get(view, k, ret);
		if (is_at(s, o, ret, facts->avma) &&
		    str_equal(fathom_symtab_name(view, ret), facts->name))
			return true;
	}
	return false;
}

/* The symbol of the file of owner @i that @facts are of. */
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

/* Where @avma is as the owner's file states it. */
static uint64_t module_address(const struct search *s, const struct fathom_kernel_owner *o,
			       uint64_t avma)
{
	uint32_t section;

	if (!o->holder.module)
		return FATHOM_NO_ADDRESS;
	/* Marks stand at its end, too. */
	if (!o->sections)
		return avma >= s->image->low && avma <= s->image->high ? avma - s->image->bias
								       : FATHOM_NO_ADDRESS;
	section = fathom_kernel_section_at(o->holder.module->main, o->sections, avma);
	return section ? avma - o->sections[section] : FATHOM_NO_ADDRESS;
}

static bool emit(struct search *s, const struct hit *h, uint32_t rank)
{
	const char *path = s->owners->items[h->owner]->path;
	const struct fathom_kernel_owner *o = open_owner(s, h->owner);
	struct fathom_symbol symbol;
	struct fathom_match m = {
		.address = h->facts.avma,
		.size = h->facts.size,
		.linkage_name = fathom_find_keep(s->f, h->facts.name),
		.module =
			fathom_find_keep(s->f, (struct fathom_str){ path, (uint32_t)strlen(path) }),
		.query = h->query,
		.rank = rank,
		.type = h->facts.type,
		.binding = h->facts.bind,
		.table = FATHOM_TABLE_KALLSYMS,
		.source = FATHOM_SOURCE_KALLSYMS,
		.flags = FATHOM_MATCH_ADDRESS,
	};

	if (!m.linkage_name || !m.module || !o || !set_name(s, h->facts.name))
		return false;
	m.module_address = module_address(s, o, m.address);
	if (m.module_address != FATHOM_NO_ADDRESS &&
	    find_in_file(s, h->owner, &h->facts, &symbol)) {
		m.size = symbol.size;
		m.type = symbol.type == STT_NOTYPE ? m.type : symbol.type;
		m.binding = symbol.bind;
	}
	m.name = fathom_find_keep(s->f, fathom_find_name_shown(&s->name));
	return m.name && fathom_find_add(s->f, &m);
}

/* Makes matches of what fits, each once. False without memory. */
static bool emit_all(struct search *s)
{
	const struct hit *h = s->hits.data;
	uint32_t rank = 0;

	if (s->hits.n)
		qsort(s->hits.data, s->hits.n, sizeof *h, compare_hits);
	for (size_t i = 0; i < s->hits.n; i++) {
		const bool again = i && h[i].query == h[i - 1].query &&
				   str_equal(h[i].facts.name, h[i - 1].facts.name);

		if (i && !compare_hits(&h[i], &h[i - 1]))
			continue;
		/* Nothing is what the dynamic linker would answer, which has rank 0. */
		rank = again ? rank + 1 : 1;
		if (fathom_find_has_room(s->f, h[i].query) && !emit(s, &h[i], rank))
			return false;
	}
	return true;
}

/* Whether a query that needs debug information, if @debug, or an unanswered one asks @path. */
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

/* Has the file of owner @i searched, if there is one. False without memory. */
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

/* Symbols by kallsyms, and by the image's file what that does not know. */
static fathom_err find_names(struct search *s)
{
	struct fathom_find *f = s->f;

	if (!compare_all(s, false) || !compare_all(s, true) || !emit_all(s))
		return FATHOM_E_MEMORY;
	if (!is_asked(f, s->owners->items[0]->path, false))
		return FATHOM_OK;
	if (!add_file(s, 0))
		return FATHOM_E_MEMORY;
	return f->n_modules ? fathom_find_symbols(f) : FATHOM_OK;
}

/* Lines and inlined copies, in all files that are asked. */
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

/* Why query @q has no match. */
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

/* Lists who has symbols. False without memory. */
static bool list_owners(struct search *s)
{
	const struct fathom_kallsym *last = NULL;
	uint32_t number;

	for (size_t i = s->symbols->n_image; i < s->symbols->n; i++) {
		const struct fathom_kallsym *item = &s->symbols->items[i];
		const struct fathom_str name = { item->name + item->name_size + 2,
						 item->owner_size };

		/* Symbols of one owner stand together. */
		if (last && str_equal(name, (struct fathom_str){ last->name + last->name_size + 2,
								 last->owner_size }))
			continue;
		last = item;
		if (!use_owner(s, name, &number))
			return false;
	}
	s->uses = calloc(s->owners->n, sizeof *s->uses);
	return s->uses != NULL;
}

static fathom_err search(struct search *s)
{
	s->image = fathom_kernel_view_image(s->view);
	s->exact = malloc((s->f->n_queries + 1) * sizeof *s->exact);
	s->patterns = malloc((s->f->n_queries + 1) * sizeof *s->patterns);
	if (!s->image || !s->exact || !s->patterns || !list_owners(s))
		return FATHOM_E_MEMORY;
	FATHOM_TRY(find_names(s));
	return find_in_debug(s);
}

static void search_deinit(struct search *s)
{
	free(s->uses);
	free(s->exact);
	free(s->patterns);
	fathom_budget_release(&s->f->budget, &s->hits, sizeof(struct hit));
	fathom_array_deinit(&s->text);
	fathom_find_name_deinit(&s->name);
}

fathom_err fathom_find_kernel(struct fathom_find *f)
{
	struct fathom_kernel_view *v = (struct fathom_kernel_view *)f->view;
	struct search s = { .f = f, .view = v, .owners = &v->owners };
	fathom_err err = FATHOM_OK;

	if (!f->view->hidden) {
		FATHOM_TRY(fathom_kernel_take_table(v->kernel, v->began_ns, UINT64_MAX, &v->table,
						    &f->view->failed));
		s.symbols = &v->table->symbols;
		err = search(&s);
	}
	if (!err && !explain(&s))
		err = FATHOM_E_MEMORY;
	search_deinit(&s);
	return err;
}
