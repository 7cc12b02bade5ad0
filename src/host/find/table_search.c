/* SPDX-License-Identifier: MIT */
/*
 * Symbols by name. Exact names are asked of the dynamic linker's hash tables, a few words each; the
 * other tables have none, and are passed over once for all queries: what eight bytes of a name say
 * settles nearly all of it.
 */
#include <stdlib.h>

#include "host/base/pool.h"
#include "host/find/search.h"
#include "host/symbol/name_keys.h"

/* So many symbols are one task. */
#define TASK_SYMBOLS 32768

/* From so many plain names on, demangling each symbol is faster than comparing it with each name.
 */
#define MANY_NAMES 16

/* Symbols [from, to) of a table. */
struct task {
	uint32_t module;
	uint32_t table;
	uint32_t from;
	uint32_t to;
	struct fathom_array found; /* struct fathom_candidate_symbol */
	bool failed;
};

struct pass {
	struct fathom_find *f;
	struct fathom_name_keys keys; /* exact names, by their queries */
	uint32_t *patterns;           /* numbers of queries that look at every name */
	size_t n_patterns;
	struct fathom_name_keys plain; /* of the second pass the same, when they are many */
	struct task *tasks;
	size_t n_tasks;
	size_t cap_tasks;
};

/* Where @s stands as an address of its file; false when it is nowhere. */
static bool place(const struct fathom_symbol_table *t, const struct fathom_symbol *s,
		  uint64_t *ret_svma)
{
	const struct fathom_object *o = t->object;
	struct fathom_symbol_region region;

	/* The ends of sections, TLS and absolute symbols are in no region, and have values. */
	if (fathom_symbol_place(t, s, ret_svma, &region))
		return true;
	*ret_svma = s->value;
	if (o->image.type != ET_REL)
		return true;
	if (s->section >= o->n_sections || !(o->sections[s->section].header.flags & SHF_ALLOC))
		return s->section == FATHOM_SHN(SHN_ABS);
	*ret_svma += o->sections[s->section].base;
	return true;
}

/* Whether @s is something that has a place, or will in each thread. */
static bool is_defined(const struct fathom_symtab *t, const struct fathom_symbol *s)
{
	switch (s->type) {
	case STT_NOTYPE:
		if (fathom_symbol_is_mapping(t, s) || fathom_symbol_is_fake(t, s))
			return false;
		break;
	case STT_OBJECT:
	case STT_FUNC:
	case STT_TLS:
	case STT_GNU_IFUNC:
		break;
	default:
		return false;
	}
	if (s->section == SHN_UNDEF)
		return s->type == STT_FUNC && s->value;
	/* An absolute 0 is nothing: linkers define such a symbol for each version. */
	return s->section < FATHOM_SHN(SHN_LORESERVE) ||
	       (s->section == FATHOM_SHN(SHN_ABS) && s->value);
}

/*
 * Whether dlvsym() takes @c for the version that @q asks for: a module without any versions may
 * have what was written before there were some.
 */
static bool is_any_version(const struct fathom_find *f, const struct fathom_find_query *q,
			   const struct fathom_candidate_symbol *c)
{
	const struct fathom_find_module *m = &f->modules[c->module];

	return f->process && c->verdict && !m->dynsym->versions.numbers.size && q->version.data &&
	       !strpbrk(q->version.data, "*?[\\");
}

/*
 * Whether names in @t stand for no more than what is written: those that a program has made of the
 * paths of packages and such may have "@" in them, and no version.
 */
static bool is_verbatim(const struct fathom_symbol_table *t)
{
	return t->view.source == FATHOM_SOURCE_JITDUMP || t->view.source == FATHOM_SOURCE_PERF_MAP;
}

static bool has_version(const struct fathom_find_query *q)
{
	return q->version.data || q->is_default;
}

/* Adds symbol @number, whose name fits query @query, if its version and all else fits, too. */
static bool add(struct fathom_find *f, struct fathom_array *out, uint32_t module, uint32_t table,
		uint32_t number, uint32_t query)
{
	const struct fathom_find_module *m = &f->modules[module];
	const struct fathom_symbol_table *t = &m->module->symbols.table[table];
	const struct fathom_find_query *q = &f->queries[query];
	struct fathom_candidate_symbol c = { .query = query, .module = module, .table = table };

	c.number = number;
	fathom_symtab_get(&t->view, number, &c.symbol);
	if (!is_defined(&t->view, &c.symbol) || !place(t, &c.symbol, &c.svma))
		return true;
	c.name = fathom_symbol_base_name(fathom_symtab_name(&t->view, &c.symbol), &c.version);
	c.is_default = !c.version.data || str_starts(c.version, "@@");
	if (c.version.data) {
		c.version.data += 1 + c.is_default;
		c.version.size -= 1u + c.is_default;
	}
	if (table == m->dynsym->number) {
		c.version = fathom_dynsym_version(m->dynsym, number, &c.is_default);
		c.verdict = (uint8_t)fathom_dynsym_verdict(m->dynsym, number, &c.symbol,
							   q->version.data != NULL);
	}
	/* A stub is of interest only where it stands for the function. */
	if (c.symbol.section == SHN_UNDEF && !c.verdict)
		return true;
	if (!fathom_find_query_takes_version(q, c.version, c.is_default) &&
	    !is_any_version(f, q, &c))
		return true;
	if (is_verbatim(t)) {
		c.name = fathom_symtab_name(&t->view, &c.symbol);
		c.version = (struct fathom_str){ NULL, 0 };
		c.is_default = true;
	}
	if (!fathom_budget_reserve(&f->budget, out, sizeof c, 1))
		return false;
	((struct fathom_candidate_symbol *)out->data)[out->n++] = c;
	return true;
}

/* Asks the hash table of module @module for the exact names. */
static bool ask_hash(struct pass *p, uint32_t module)
{
	struct fathom_find *f = p->f;
	const struct fathom_find_module *m = &f->modules[module];

	for (uint32_t i = 0; i < p->keys.n; i++) {
		const uint32_t query = p->keys.item[i].value;
		struct fathom_hash_search s;
		uint32_t number;

		if (!fathom_find_asks(f, query, module))
			continue;
		fathom_hash_search_init(&s, &m->dynsym->hash, f->queries[query].text);
		while (fathom_hash_search_next(&s, &number)) {
			struct fathom_symbol symbol;

			if (number >= m->dynsym->table.count)
				continue;
			fathom_symtab_get(&m->dynsym->table, number, &symbol);
			if (str_equal(fathom_symtab_name(&m->dynsym->table, &symbol),
				      f->queries[query].text) &&
			    !add(f, &f->candidates, module, m->dynsym->number, number, query))
				return false;
		}
	}
	return true;
}

/* Asks the index of table @table of module @module, which is made now or was, for exact names. */
static bool ask_index(struct pass *p, uint32_t module, uint32_t table,
		      const struct fathom_name_index *x)
{
	struct fathom_find *f = p->f;
	const struct fathom_symtab *view = &f->modules[module].module->symbols.table[table].view;

	for (uint32_t i = 0; i < p->keys.n; i++) {
		const uint32_t query = p->keys.item[i].value;
		const struct fathom_str wanted = f->queries[query].text;

		if (!fathom_find_asks(f, query, module))
			continue;
		for (uint32_t k = fathom_name_index_first(x, wanted); k; k = x->next[k]) {
			struct fathom_symbol s;
			struct fathom_str version;
			struct fathom_str name;

			fathom_symtab_get(view, k, &s);
			name = fathom_symtab_name(view, &s);
			if ((str_equal(name, wanted) ||
			     str_equal(fathom_symbol_base_name(name, &version), wanted)) &&
			    !add(f, &f->candidates, module, table, k, query))
				return false;
		}
	}
	return true;
}

/* Whether the name that starts at @text is what @q wants: a version may follow in it. */
static bool is_name(const char *text, uint64_t left, const struct fathom_find_query *q,
		    bool verbatim)
{
	const struct fathom_str wanted = q->text;

	return left > wanted.size && memcmp(text, wanted.data, wanted.size) == 0 &&
	       (!text[wanted.size] || (text[wanted.size] == '@' && (!verbatim || has_version(q))));
}

/* Compares the name of symbol @i with the exact names. */
static bool compare_exact(struct pass *p, struct task *t, const struct fathom_symtab *view,
			  uint32_t i, uint32_t name)
{
	const char *text = (const char *)view->strings.data + name;
	const uint64_t left = view->strings.size - name;
	const bool verbatim =
		is_verbatim(&p->f->modules[t->module].module->symbols.table[t->table]);

	for (uint32_t k = fathom_name_keys_first(&p->keys, text, left); k;
	     k = fathom_name_keys_next(&p->keys, k)) {
		const uint32_t query = p->keys.item[k - 1].value;

		if (is_name(text, left, &p->f->queries[query], verbatim) &&
		    fathom_find_asks(p->f, query, t->module) &&
		    !add(p->f, &t->found, t->module, t->table, i, query))
			return false;
	}
	return true;
}

/* Compares the demangled form of symbol @i, called @name, with many plain names. */
static bool compare_plain(struct pass *p, struct task *t, uint32_t i, struct fathom_find_name *name)
{
	char bare[FATHOM_MAX_QUERY + 1];
	const uint32_t size = fathom_find_name_bare(name, bare);

	for (uint32_t k = size ? fathom_name_keys_first(&p->plain, bare, size) : 0; k;
	     k = fathom_name_keys_next(&p->plain, k)) {
		const uint32_t query = p->plain.item[k - 1].value;

		if (str_is(p->f->queries[query].text, bare) &&
		    fathom_find_asks(p->f, query, t->module) &&
		    !add(p->f, &t->found, t->module, t->table, i, query))
			return false;
	}
	return true;
}

/* Compares the name of symbol @i with all that is no exact name. */
static bool compare_patterns(struct pass *p, struct task *t, const struct fathom_symtab *view,
			     uint32_t i, struct fathom_find_name *name)
{
	struct fathom_symbol s;
	struct fathom_str text;
	struct fathom_str version;
	struct fathom_str full;
	char copy[1024];
	bool verbatim;

	fathom_symtab_get(view, i, &s);
	full = is_defined(view, &s) ? fathom_symtab_name(view, &s) : (struct fathom_str){ NULL, 0 };
	if (!full.data)
		return true;
	text = fathom_symbol_base_name(full, &version);
	if (version.data && text.size < sizeof copy) {
		memcpy(copy, text.data, text.size);
		copy[text.size] = '\0';
		text.data = copy;
	} else {
		text = full;
	}
	verbatim = version.data &&
		   is_verbatim(&p->f->modules[t->module].module->symbols.table[t->table]);
	fathom_find_name_set(name, verbatim ? full : text);
	if (p->plain.n)
		return compare_plain(p, t, i, name);
	for (size_t k = 0; k < p->n_patterns; k++) {
		if (verbatim)
			fathom_find_name_set(
				name, has_version(&p->f->queries[p->patterns[k]]) ? text : full);
		if (fathom_find_asks(p->f, p->patterns[k], t->module) &&
		    fathom_find_query_takes_name(&p->f->queries[p->patterns[k]], name) &&
		    !add(p->f, &t->found, t->module, t->table, i, p->patterns[k]))
			return false;
	}
	return true;
}

static void run_task(void *data, size_t number, unsigned thread)
{
	struct pass *p = data;
	struct task *t = &p->tasks[number];
	const struct fathom_find_module *m = &p->f->modules[t->module];
	const struct fathom_symtab *view = &m->module->symbols.table[t->table].view;
	const uint64_t size = view->is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	const bool is_hashed = t->table == m->dynsym->number && m->dynsym->has_hash;
	const bool exact = p->keys.n && !is_hashed;
	struct fathom_find_name name = { 0 };

	(void)thread;
	for (uint32_t i = t->from; i < t->to && !t->failed; i++) {
		/* The name is the first word of both classes' entries. */
		const uint32_t off = load_u32(view->entries.data + i * size, view->swap);

		if (!off || off >= view->strings.size)
			continue;
		t->failed = (exact && !compare_exact(p, t, view, i, off)) ||
			    (p->n_patterns && !compare_patterns(p, t, view, i, &name));
	}
	fathom_find_name_deinit(&name);
}

/* Sorts the queries into exact names and others. Those of lines are neither. */
static bool sort_queries(struct pass *p, enum fathom_find_pass which, const bool *has_match)
{
	const struct fathom_find *f = p->f;

	p->patterns = malloc((f->n_queries + 1) * sizeof *p->patterns);
	if (!p->patterns || !fathom_name_keys_init(&p->keys, f->n_queries + 1))
		return false;
	for (uint32_t i = 0; i < f->n_queries; i++) {
		const struct fathom_find_query *q = &f->queries[i];

		if (q->kind == FATHOM_QUERY_LINE || q->kind == FATHOM_QUERY_BAD || q->is_answered)
			continue;
		if (which == FATHOM_PASS_DEMANGLED) {
			if (q->kind == FATHOM_QUERY_NAME && !q->is_demangled && !has_match[i])
				p->patterns[p->n_patterns++] = i;
		} else if (q->kind == FATHOM_QUERY_NAME && !q->is_demangled) {
			fathom_name_keys_add(&p->keys, q->text, i);
		} else {
			p->patterns[p->n_patterns++] = i;
		}
	}
	if (which == FATHOM_PASS_ASKED && f->seeks_lists)
		fathom_name_keys_add(&p->keys, f->queries[f->n_queries].text,
				     (uint32_t)f->n_queries);
	return true;
}

/* Sorts the plain names of the second pass, when they are many. */
static bool sort_plain(struct pass *p, enum fathom_find_pass which)
{
	if (which != FATHOM_PASS_DEMANGLED || p->n_patterns <= MANY_NAMES)
		return true;
	if (!fathom_name_keys_init(&p->plain, p->n_patterns))
		return false;
	for (size_t i = 0; i < p->n_patterns; i++)
		fathom_name_keys_add(&p->plain, p->f->queries[p->patterns[i]].text, p->patterns[i]);
	return true;
}

/* Whether table @t of @m is one of exported symbols. */
static bool is_wanted(const struct fathom_find *f, const struct fathom_find_module *m, uint32_t t)
{
	return !(f->flags & FATHOM_FIND_EXPORTED) || t == m->dynsym->number;
}

static bool add_tasks(struct pass *p, uint32_t module, uint32_t table)
{
	const uint32_t count = p->f->modules[module].module->symbols.table[table].view.count;

	/* Symbol 0 is none. */
	for (uint32_t from = 1; from < count; from += TASK_SYMBOLS) {
		if (p->n_tasks == p->cap_tasks) {
			const size_t cap = p->cap_tasks ? 2 * p->cap_tasks : 64;
			struct task *tasks = realloc(p->tasks, cap * sizeof *tasks);

			if (!tasks)
				return false;
			p->tasks = tasks;
			p->cap_tasks = cap;
		}
		p->tasks[p->n_tasks++] = (struct task){
			.module = module,
			.table = table,
			.from = from,
			.to = count - from > TASK_SYMBOLS ? from + TASK_SYMBOLS : count,
		};
		if (count - from <= TASK_SYMBOLS)
			break;
	}
	return true;
}

/* Whether some query of the pass asks module @module. */
static bool is_asked(const struct pass *p, uint32_t module)
{
	for (uint32_t i = 0; i < p->keys.n; i++)
		if (fathom_find_asks(p->f, p->keys.item[i].value, module))
			return true;
	for (size_t i = 0; i < p->n_patterns; i++)
		if (fathom_find_asks(p->f, p->patterns[i], module))
			return true;
	return false;
}

/* Has table @table of module @module looked through: by its index, if names are asked for again. */
static bool plan_table(struct pass *p, uint32_t module, uint32_t table)
{
	struct fathom_module *m = p->f->modules[module].module;
	const struct fathom_name_index *x;

	if (!p->n_patterns && atomic_load(&m->name_passes) >= FATHOM_INDEX_PASSES) {
		x = fathom_module_names(m, table);
		if (x)
			return ask_index(p, module, table, x);
	}
	return add_tasks(p, module, table);
}

/* Asks the hash tables, and plans the passes over the other tables. */
static bool plan(struct pass *p, uint32_t first)
{
	struct fathom_find *f = p->f;

	for (uint32_t i = first; i < f->n_modules; i++) {
		const struct fathom_find_module *m = &f->modules[i];

		if (!is_asked(p, i))
			continue;
		if (m->dynsym->has_hash && m->dynsym->number != FATHOM_NONE && !ask_hash(p, i))
			return false;
		for (uint32_t t = 0; t < m->module->symbols.n_tables; t++) {
			const bool hashed = t == m->dynsym->number && m->dynsym->has_hash;

			if (is_wanted(f, m, t) && !(hashed && !p->n_patterns) &&
			    !plan_table(p, i, t))
				return false;
		}
	}
	return true;
}

/* Takes what the tasks have found, in their order. */
static bool collect(struct pass *p)
{
	struct fathom_array *to = &p->f->candidates;

	for (size_t i = 0; i < p->n_tasks; i++) {
		struct task *t = &p->tasks[i];
		const size_t size = sizeof(struct fathom_candidate_symbol);

		if (t->failed || !fathom_budget_reserve(&p->f->budget, to, size, t->found.n))
			return false;
		if (t->found.n)
			memcpy((char *)to->data + to->n * size, t->found.data, t->found.n * size);
		to->n += t->found.n;
		fathom_budget_release(&p->f->budget, &t->found, size);
	}
	return true;
}

static bool *find_matched(const struct fathom_find *f)
{
	const struct fathom_candidate_symbol *c = f->candidates.data;
	bool *has = calloc(f->n_queries + 1, sizeof *has);

	for (size_t i = 0; has && i < f->candidates.n; i++)
		has[c[i].query] = true;
	return has;
}

fathom_err fathom_find_tables(struct fathom_find *f, enum fathom_find_pass which, uint32_t first)
{
	struct pass p = { .f = f };
	bool *has_match = find_matched(f);
	bool done = has_match && sort_queries(&p, which, has_match) && sort_plain(&p, which) &&
		    plan(&p, first);

	if (done) {
		fathom_pool_run(p.n_tasks > 1 ? f->budget.session->threads : 1, p.n_tasks, run_task,
				&p);
		done = collect(&p);
	}
	/* Not before: a file that is loaded twice is one module. */
	for (uint32_t i = first; !p.n_patterns && i < f->n_modules; i++)
		if (is_asked(&p, i))
			atomic_fetch_add(&f->modules[i].module->name_passes, 1);
	for (size_t i = 0; i < p.n_tasks; i++)
		fathom_budget_release(&f->budget, &p.tasks[i].found,
				      sizeof(struct fathom_candidate_symbol));
	free(p.tasks);
	free(p.patterns);
	fathom_name_keys_deinit(&p.keys);
	fathom_name_keys_deinit(&p.plain);
	free(has_match);
	return done ? FATHOM_OK : FATHOM_E_MEMORY;
}
