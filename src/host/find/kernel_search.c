/* SPDX-License-Identifier: MIT */
/*
 * Finding names in the running kernel. Its own table, kallsyms, says what there is and where; sizes
 * and types are those of the image's and the modules' files, where these are found. What only the
 * image's file knows (a kernel may keep no names of data) is looked for there, and so are lines and
 * inlined copies.
 */
#include <stdio.h>
#include <stdlib.h>

#include "host/find/search.h"
#include "host/target/kernel/kernel.h"

/* As many as answers have; symbols of further ones are not found, which a note says. */
#define MAX_OWNERS 4096

/* So many symbols of one file are looked for in its tables by passes; more, by an index. */
#define FEW 4

/* Who has symbols: the image, number 0, or what kallsyms has in brackets. */
struct owner {
	struct fathom_str name;       /* in the table; size 0: the image */
	char *path;                   /* "[NAME]" */
	struct fathom_module *module; /* NULL: none, or not looked for yet */
	uint64_t *sections;           /* of a module's file */
	enum fathom_reason reason;    /* why there is no file */
	uint32_t looked_up;           /* symbols */
	bool is_known;                /* its file was looked for */
	bool is_added;                /* to what is searched */
};

/* A symbol that fits a query. */
struct hit {
	uint32_t query;
	uint32_t owner;
	struct fathom_kallsym_facts facts;
};

struct search {
	struct fathom_find *f;
	struct fathom_kernel *kernel;
	const struct fathom_kernel_image *image;
	const struct fathom_kallsyms *symbols;
	struct owner *owners;
	uint32_t n_owners;
	uint32_t last_owner;
	uint32_t *exact; /* queries of exact names, by name */
	size_t n_exact;
	uint32_t *patterns; /* those that look at every name */
	size_t n_patterns;
	struct fathom_array hits;     /* struct hit */
	struct fathom_array text;     /* char: a name with a NUL */
	struct fathom_find_name name; /* of that */
};

static bool is_image(const struct owner *o)
{
	return o->name.size == 0;
}

static bool add_owner(struct search *s, struct fathom_str name)
{
	struct owner *larger = realloc(s->owners, (s->n_owners + 1) * sizeof *larger);
	struct owner *o;

	if (!larger)
		return false;
	s->owners = larger;
	o = &larger[s->n_owners];
	*o = (struct owner){ .name = name };
	if (asprintf(&o->path, "[%.*s]", name.size ? (int)name.size : 6,
		     name.size ? name.data : "kernel") < 0)
		return false;
	s->n_owners++;
	return true;
}

static void note_owners(const struct search *s)
{
	struct fathom_errinfo info;

	(void)fathom_fail(&info, FATHOM_E_UNSUPPORTED, "", 0,
			  "more than 4,096 modules: the symbols of others are not found");
	fathom_errinfo_set_file(&info, "/proc/kallsyms");
	fathom_notes_add(s->f->notes, &info);
}

/* The number of the owner called @name, FATHOM_NONE when there are too many. False without memory.
 */
static bool use_owner(struct search *s, struct fathom_str name, uint32_t *ret)
{
	/* Symbols of one owner stand together. */
	*ret = s->last_owner;
	if (str_equal(s->owners[s->last_owner].name, name))
		return true;
	for (uint32_t i = 0; i < s->n_owners; i++)
		if (str_equal(s->owners[i].name, name)) {
			*ret = s->last_owner = i;
			return true;
		}
	*ret = FATHOM_NONE;
	if (s->n_owners == MAX_OWNERS) {
		note_owners(s);
		return true;
	}
	if (!add_owner(s, name))
		return false;
	*ret = s->last_owner = s->n_owners - 1;
	return true;
}

/* Opens the file of a module and reads where its sections are. False without memory. */
static bool open_module(struct search *s, struct owner *o)
{
	const struct fathom_kernel_module *file;

	o->reason = FATHOM_REASON_NO_DEBUG_INFO;
	if (!fathom_kernel_may_have_file(o->name))
		return true;
	file = fathom_kernel_module(s->kernel, o->name);
	if (!file)
		return false;
	o->reason = file->reason;
	if (!file->module)
		return true;
	o->sections = calloc((size_t)file->module->main->n_sections + 1, sizeof *o->sections);
	if (!o->sections)
		return false;
	if (fathom_kernel_read_sections(&s->kernel->place, o->name, file->module->main,
					o->sections))
		o->module = file->module;
	else
		o->reason = FATHOM_REASON_NO_PERMISSION;
	return true;
}

/* Looks for the owner's file, once. False without memory. */
static bool look_for_file(struct search *s, struct owner *o)
{
	if (o->is_known)
		return true;
	o->is_known = true;
	if (!is_image(o))
		return open_module(s, o);
	o->module = s->image->module;
	o->reason = s->image->reason;
	return true;
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
	    !fathom_find_query_takes_module(&s->f->queries[query], s->owners[hit.owner].path))
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
static bool is_at(const struct search *s, const struct owner *o, const struct fathom_symbol *symbol,
		  uint64_t avma)
{
	if (is_image(o))
		return symbol->value + s->image->bias == avma;
	return symbol->section < o->module->main->n_sections && o->sections[symbol->section] &&
	       symbol->value + o->sections[symbol->section] == avma;
}

/* Looks for the symbol called @name at @avma in table @t of the owner's file. */
static bool find_in_table(const struct search *s, const struct owner *o, uint32_t t,
			  const struct fathom_kallsym_facts *facts, struct fathom_symbol *ret)
{
	const struct fathom_symtab *view = &o->module->symbols.table[t].view;
	const struct fathom_name_index *x =
		o->looked_up > FEW ? fathom_module_names(o->module, t) : NULL;

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
	for (uint32_t k = 1; o->looked_up <= FEW && k < view->count; k++) {
		fathom_symtab_get(view, k, ret);
		if (is_at(s, o, ret, facts->avma) &&
		    str_equal(fathom_symtab_name(view, ret), facts->name))
			return true;
	}
	return false;
}

/* The symbol of the owner's file that @facts are of. */
static bool find_in_file(const struct search *s, struct owner *o,
			 const struct fathom_kallsym_facts *facts, struct fathom_symbol *ret)
{
	o->looked_up += o->looked_up <= FEW;
	for (uint32_t t = 0; t < o->module->symbols.n_tables; t++)
		if (find_in_table(s, o, t, facts, ret))
			return true;
	return false;
}

/* Where @avma is as the owner's file states it. */
static uint64_t module_address(const struct search *s, const struct owner *o, uint64_t avma)
{
	uint32_t section;

	if (!o->module)
		return FATHOM_NO_ADDRESS;
	/* Marks stand at its end, too. */
	if (is_image(o))
		return avma >= s->image->low && avma <= s->image->high ? avma - s->image->bias
								       : FATHOM_NO_ADDRESS;
	section = fathom_kernel_section_at(o->module->main, o->sections, avma);
	return section ? avma - o->sections[section] : FATHOM_NO_ADDRESS;
}

static bool emit(struct search *s, const struct hit *h, uint32_t rank)
{
	struct owner *o = &s->owners[h->owner];
	struct fathom_symbol symbol;
	struct fathom_match m = {
		.address = h->facts.avma,
		.size = h->facts.size,
		.linkage_name = fathom_find_keep(s->f, h->facts.name),
		.module = fathom_find_keep(
			s->f, (struct fathom_str){ o->path, (uint32_t)strlen(o->path) }),
		.query = h->query,
		.rank = rank,
		.type = h->facts.type,
		.binding = h->facts.bind,
		.table = FATHOM_TABLE_KALLSYMS,
		.source = FATHOM_SOURCE_KALLSYMS,
		.flags = FATHOM_MATCH_ADDRESS,
	};

	if (!m.linkage_name || !m.module || !look_for_file(s, o) || !set_name(s, h->facts.name))
		return false;
	m.module_address = module_address(s, o, m.address);
	if (m.module_address != FATHOM_NO_ADDRESS && find_in_file(s, o, &h->facts, &symbol)) {
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

/* Has the owner's file searched, if there is one. False without memory. */
static bool add_file(struct search *s, struct owner *o)
{
	struct fathom_find *f = s->f;
	struct fathom_find_module *m;

	if (!look_for_file(s, o))
		return false;
	if (!o->module || o->is_added)
		return true;
	o->is_added = true;
	if (!fathom_find_add_module(f, o->module, o->path, is_image(o) ? s->image->bias : 0))
		return false;
	m = &f->modules[f->n_modules - 1];
	m->is_part = true;
	m->low = is_image(o) ? s->image->low : 0;
	m->high = is_image(o) ? s->image->high : 0;
	m->sections = o->sections;
	return true;
}

/* Symbols by kallsyms, and by the image's file what that does not know. */
static fathom_err find_names(struct search *s)
{
	struct fathom_find *f = s->f;

	if (!compare_all(s, false) || !compare_all(s, true) || !emit_all(s))
		return FATHOM_E_MEMORY;
	if (!is_asked(f, s->owners[0].path, false))
		return FATHOM_OK;
	if (!add_file(s, &s->owners[0]))
		return FATHOM_E_MEMORY;
	return f->n_modules ? fathom_find_symbols(f) : FATHOM_OK;
}

/* Lines and inlined copies, in all files that are asked. */
static fathom_err find_in_debug(struct search *s)
{
	struct fathom_find *f = s->f;
	bool any = false;

	for (uint32_t i = 0; i < s->n_owners; i++) {
		if (!is_asked(f, s->owners[i].path, true))
			continue;
		any = true;
		if (!add_file(s, &s->owners[i]))
			return FATHOM_E_MEMORY;
	}
	if (!any)
		return FATHOM_OK;
	if (!s->image->module && is_asked(f, s->owners[0].path, true))
		fathom_kernel_note_no_image(s->kernel);
	return fathom_find_debug(f);
}

/* Why query @q has no match. */
static enum fathom_reason why_none(const struct search *s, const struct fathom_find_query *q)
{
	enum fathom_reason reason = FATHOM_REASON_NO_FILE;

	if (q->kind == FATHOM_QUERY_BAD)
		return FATHOM_REASON_BAD_ADDRESS;
	if (!s->kernel->start)
		return FATHOM_REASON_NO_PERMISSION;
	for (uint32_t i = 0; i < s->n_owners; i++) {
		const struct owner *o = &s->owners[i];

		if (!fathom_find_query_takes_module(q, o->path))
			continue;
		if (!fathom_find_needs_debug(s->f, q) || (o->module && o->module->debug))
			return FATHOM_REASON_NO_SUCH_SYMBOL;
		if (reason == FATHOM_REASON_NO_FILE)
			reason = o->module ? o->module->no_debug : o->reason;
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

/* Lists who has symbols: the image first. False without memory. */
static bool list_owners(struct search *s)
{
	uint32_t number;

	if (!add_owner(s, (struct fathom_str){ "", 0 }))
		return false;
	for (size_t i = s->symbols->n_image; i < s->symbols->n; i++) {
		const struct fathom_kallsym *item = &s->symbols->items[i];
		const struct fathom_str name = { item->name + item->name_size + 2,
						 item->owner_size };

		if (!use_owner(s, name, &number))
			return false;
	}
	return true;
}

static fathom_err search(struct search *s)
{
	s->image = fathom_kernel_image(s->kernel);
	s->exact = malloc((s->f->n_queries + 1) * sizeof *s->exact);
	s->patterns = malloc((s->f->n_queries + 1) * sizeof *s->patterns);
	if (!s->image || !s->exact || !s->patterns || !list_owners(s))
		return FATHOM_E_MEMORY;
	FATHOM_TRY(find_names(s));
	return find_in_debug(s);
}

static void search_deinit(struct search *s)
{
	for (uint32_t i = 0; i < s->n_owners; i++) {
		free(s->owners[i].path);
		free(s->owners[i].sections);
	}
	free(s->owners);
	free(s->exact);
	free(s->patterns);
	fathom_budget_release(&s->f->budget, &s->hits, sizeof(struct hit));
	fathom_array_deinit(&s->text);
	fathom_find_name_deinit(&s->name);
}

fathom_err fathom_find_kernel(struct fathom_find *f, struct fathom_kernel *k,
			      struct fathom_errinfo *reterr)
{
	struct search s = { .f = f, .kernel = k };
	struct fathom_kernel_table *table = NULL;
	fathom_err err = FATHOM_OK;

	if (k->start) {
		FATHOM_TRY(
			fathom_kernel_take_table(k, fathom_now_ns(), UINT64_MAX, &table, reterr));
		s.symbols = &table->symbols;
		err = search(&s);
	}
	if (!err && !explain(&s))
		err = FATHOM_E_MEMORY;
	search_deinit(&s);
	if (table)
		fathom_kernel_give_table(k, table);
	return err;
}
