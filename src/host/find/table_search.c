/* SPDX-License-Identifier: MIT */
/*
 * Finds symbols by name. The dynamic linker's hash tables answer exact names with a few reads.
 * Other tables have no hash tables and are scanned once for all queries; comparing eight bytes
 * rejects nearly all names.
 */
#include <stdlib.h>

#include "host/base/array.h"
#include "host/base/pool.h"
#include "host/base/progress.h"
#include "host/find/name_set.h"
#include "host/find/search.h"

/* Symbols per task. */
#define TASK_SYMBOLS 32768

/* Symbols [from, to) of a table. */
struct task {
	uint32_t module;
	uint32_t table;
	uint32_t from;
	uint32_t to;
	struct fathom_candidates found;
	bool failed;
};

struct pass {
	struct fathom_find *f;
	const struct fathom_name_set *names;
	enum fathom_find_tables which;
	struct task *tasks;
	size_t n_tasks;
	size_t cap_tasks;
};

/* Finds the address of @s in its file; returns false if it has none. */
static bool place(const struct fathom_symbol_table *t, const struct fathom_symbol *s,
		  uint64_t *ret_svma)
{
	const struct fathom_object *o = t->object;
	struct fathom_symbol_region region;

	/* Section ends, TLS and absolute symbols are in no region, but have values. */
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

/* Returns whether @s is defined: it has an address, or one per thread. */
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
	/* Linkers define an absolute 0 for each version: not a real symbol. */
	return s->section < FATHOM_SHN(SHN_LORESERVE) ||
	       (s->section == FATHOM_SHN(SHN_ABS) && s->value);
}

/*
 * Returns whether dlvsym() accepts @c for @q's version: its module has no versions at all, and may
 * predate them.
 */
static bool is_any_version(const struct fathom_find *f, const struct fathom_find_query *q,
			   const struct fathom_candidate *c)
{
	const struct fathom_find_module *m = &f->modules[c->module];

	return f->process && c->verdict && !m->dynsym->versions.numbers.size && q->version.data &&
	       !strpbrk(q->version.data, "*?[\\");
}

static bool has_version(const struct fathom_find_query *q)
{
	return q->version.data || q->is_default;
}

/*
 * Adds symbol @number, whose name fits query @query, if its version and other conditions fit, too.
 */
static bool add(struct fathom_find *f, struct fathom_candidates *out, uint32_t module,
		uint32_t table, uint32_t number, uint32_t query)
{
	const struct fathom_find_module *m = &f->modules[module];
	const struct fathom_symbol_table *t = &m->module->symbols.table[table];
	const struct fathom_find_query *q = &f->queries[query];
	struct fathom_candidate c = { .query = query, .module = module, .table = table };

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
	/* A stub counts only if it serves as the function's address. */
	if (c.symbol.section == SHN_UNDEF && !c.verdict)
		return true;
	if (!fathom_find_query_takes_version(q, c.version, c.is_default) &&
	    !is_any_version(f, q, &c))
		return true;
	if (fathom_symtab_is_verbatim(&t->view)) {
		c.name = fathom_symtab_name(&t->view, &c.symbol);
		c.version = (struct fathom_str){ NULL, 0 };
		c.is_default = true;
	}
	return fathom_budget_push(&f->budget, out, c);
}

/* Looks up the exact names in the hash table of module @module. */
static bool ask_hash(struct pass *p, uint32_t module)
{
	struct fathom_find *f = p->f;
	const struct fathom_find_module *m = &f->modules[module];

	for (uint32_t i = 0; i < p->names->exact.n; i++) {
		const uint32_t query = p->names->exact.item[i].value;
		struct fathom_hash_search s;
		uint32_t number;

		if (f->queries[query].is_answered || !fathom_find_asks(f, query, module))
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

/* Returns whether the name at @text, perhaps followed by a version, is @q's. */
static bool is_name(const char *text, uint64_t left, const struct fathom_find_query *q,
		    bool verbatim)
{
	const struct fathom_str wanted = q->text;

	return left > wanted.size && memcmp(text, wanted.data, wanted.size) == 0 &&
	       (!text[wanted.size] || (text[wanted.size] == '@' && (!verbatim || has_version(q))));
}

/* Looks up exact names in the index of table @table of module @module; makes it if need be. */
static bool ask_index(struct pass *p, uint32_t module, uint32_t table,
		      const struct fathom_name_index *x)
{
	struct fathom_find *f = p->f;
	const struct fathom_symtab *view = &f->modules[module].module->symbols.table[table].view;

	for (uint32_t i = 0; i < p->names->exact.n; i++) {
		const uint32_t query = p->names->exact.item[i].value;
		const struct fathom_str wanted = f->queries[query].text;

		if (f->queries[query].is_answered || !fathom_find_asks(f, query, module))
			continue;
		for (uint32_t k = fathom_name_index_first(x, wanted); k; k = x->next[k]) {
			struct fathom_symbol s;
			struct fathom_str name;

			fathom_symtab_get(view, k, &s);
			name = fathom_symtab_name(view, &s);
			if (name.data &&
			    is_name(name.data, (uint64_t)name.size + 1, &f->queries[query],
				    fathom_symtab_is_verbatim(view)) &&
			    !add(f, &f->candidates, module, table, k, query))
				return false;
		}
	}
	return true;
}

/* Adds symbol @i, called @text, for each exact name from key @k on that fits. */
static bool compare_exact(struct pass *p, struct task *t, uint32_t i, const char *text,
			  uint64_t left, uint32_t k)
{
	const bool verbatim = fathom_symtab_is_verbatim(
		&p->f->modules[t->module].module->symbols.table[t->table].view);

	for (; k; k = fathom_name_keys_next(&p->names->exact, k)) {
		const uint32_t query = p->names->exact.item[k - 1].value;

		if (is_name(text, left, &p->f->queries[query], verbatim) &&
		    !p->f->queries[query].is_answered && fathom_find_asks(p->f, query, t->module) &&
		    !add(p->f, &t->found, t->module, t->table, i, query))
			return false;
	}
	return true;
}

/* A symbol being compared with queries. */
struct compared {
	struct pass *p;
	struct task *t;
	uint32_t number;
};

static bool take_query(void *data, uint32_t query)
{
	const struct compared *c = data;

	return !fathom_find_asks(c->p->f, query, c->t->module) ||
	       add(c->p->f, &c->t->found, c->t->module, c->t->table, c->number, query);
}

/* Compares the name of symbol @i with the other queries. */
static bool compare_others(struct pass *p, struct task *t, const struct fathom_symtab *view,
			   uint32_t i, struct fathom_find_name *name)
{
	struct compared c = { p, t, i };
	struct fathom_symbol s;
	struct fathom_str text;
	struct fathom_str version;
	struct fathom_str full;
	char copy[1024];

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
	fathom_find_name_set(name, version.data && fathom_symtab_is_verbatim(view) ? full : text);
	if (!fathom_name_set_compare(p->names, name, false, take_query, &c))
		return false;
	if (version.data && fathom_symtab_is_verbatim(view))
		fathom_find_name_set(name, text);
	return fathom_name_set_compare(p->names, name, true, take_query, &c);
}

/* Compares the names of the symbols of @t with the exact names. */
static bool pass_exact(struct pass *p, struct task *t, const struct fathom_symtab *view)
{
	const uint64_t size = view->is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	const struct fathom_name_keys keys = p->names->exact;
	const struct fathom_bytes strings = view->strings;
	const uint8_t *entry = view->entries.data + t->from * size;
	const bool swap = view->swap;

	for (uint32_t i = t->from; i < t->to; i++, entry += size) {
		/* In both ELF classes the name is an entry's first word. */
		const uint32_t off = load_u32(entry, swap);
		const char *text = (const char *)strings.data + off;
		uint32_t key;

		if (!off || off >= strings.size)
			continue;
		key = fathom_name_keys_first(&keys, text, strings.size - off);
		if (key && !compare_exact(p, t, i, text, strings.size - off, key))
			return false;
	}
	return true;
}

/* Compares the names of the symbols of @t with the other queries. */
static bool pass_others(struct pass *p, struct task *t, const struct fathom_symtab *view)
{
	const uint64_t size = view->is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	struct fathom_find_name name = { 0 };
	bool done = true;

	for (uint32_t i = t->from; i < t->to && done; i++) {
		const uint32_t off = load_u32(view->entries.data + i * size, view->swap);
		const char *text = (const char *)view->strings.data + off;

		if (off && off < view->strings.size && fathom_name_set_may_fit(p->names, text))
			done = compare_others(p, t, view, i, &name);
	}
	fathom_find_name_deinit(&name);
	return done;
}

static void run_task(void *data, size_t number, unsigned thread)
{
	struct pass *p = data;
	struct task *t = &p->tasks[number];
	const struct fathom_find_module *m = &p->f->modules[t->module];
	const struct fathom_symtab *view = &m->module->symbols.table[t->table].view;
	const bool is_hashed = t->table == m->dynsym->number && m->dynsym->has_hash;

	(void)thread;
	t->failed = (p->names->exact.n && !is_hashed && !pass_exact(p, t, view)) ||
		    (fathom_name_set_has_others(p->names) && !pass_others(p, t, view));
}

/* Returns whether table @t of @m belongs to the pass. */
static bool is_wanted(const struct pass *p, const struct fathom_find_module *m, uint32_t t)
{
	const bool is_dynamic = t == m->dynsym->number;

	if (p->which == FATHOM_TABLES_OTHERS && is_dynamic)
		return false;
	return is_dynamic ||
	       (p->which != FATHOM_TABLES_DYNAMIC && !(p->f->flags & FATHOM_FIND_EXPORTED));
}

static bool add_tasks(struct pass *p, uint32_t module, uint32_t table)
{
	const uint32_t count = p->f->modules[module].module->symbols.table[table].view.count;

	/* Symbol 0 is the null symbol. */
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

struct asked {
	const struct fathom_find *f;
	uint32_t module;
};

static bool asks_not(void *data, uint32_t query)
{
	const struct asked *a = data;

	return !fathom_find_asks(a->f, query, a->module);
}

/* Returns whether a query of the pass selects module @module. */
static bool is_asked(const struct pass *p, uint32_t module)
{
	struct asked a = { p->f, module };

	return !fathom_name_set_each(p->names, asks_not, &a);
}

/* Cost of an index lookup, in symbols of a pass. */
#define LOOK_UP_COST 16

/* Plans the search of table @table of module @module: by its index if that pays, else by tasks. */
static bool plan_table(struct pass *p, uint32_t module, uint32_t table)
{
	struct fathom_module *m = p->f->modules[module].module;
	const struct fathom_name_index *x;

	if (!fathom_name_set_has_others(p->names) &&
	    p->names->exact.n < m->symbols.table[table].view.count / LOOK_UP_COST &&
	    atomic_load(&m->name_passes) >= FATHOM_INDEX_PASSES) {
		x = fathom_module_names(m, table);
		if (x)
			return ask_index(p, module, table, x);
	}
	return add_tasks(p, module, table);
}

/* Searches the hash tables and plans the passes over the other tables. */
static bool plan(struct pass *p, uint32_t first)
{
	struct fathom_find *f = p->f;

	for (uint32_t i = first; i < f->n_modules; i++) {
		const struct fathom_find_module *m = &f->modules[i];

		if (!is_asked(p, i))
			continue;
		if (m->dynsym->has_hash && p->which != FATHOM_TABLES_OTHERS && !ask_hash(p, i))
			return false;
		for (uint32_t t = 0; t < m->module->symbols.n_tables; t++) {
			const bool hashed = t == m->dynsym->number && m->dynsym->has_hash;

			if (is_wanted(p, m, t) &&
			    !(hashed && !fathom_name_set_has_others(p->names)) &&
			    !plan_table(p, i, t))
				return false;
		}
	}
	return true;
}

/* Collects the tasks' candidates in order. */
static bool collect(struct pass *p)
{
	struct fathom_candidates *to = &p->f->candidates;

	for (size_t i = 0; i < p->n_tasks; i++) {
		struct task *t = &p->tasks[i];

		if (t->failed || !fathom_budget_room(&p->f->budget, to, t->found.n))
			return false;
		if (t->found.n)
			memcpy(to->items + to->n, t->found.items, t->found.n * sizeof *to->items);
		to->n += t->found.n;
		fathom_budget_free(&p->f->budget, &t->found);
	}
	return true;
}

fathom_err fathom_find_tables(struct fathom_find *f, const struct fathom_name_set *names,
			      enum fathom_find_tables which, uint32_t first)
{
	struct pass p = { .f = f, .names = names, .which = which };
	bool done;

	if (first >= f->n_modules || fathom_name_set_is_empty(names))
		return FATHOM_OK;
	done = plan(&p, first);
	if (done) {
		fathom_run_asking(f->budget.session, FATHOM_PHASE_FIND,
				  p.n_tasks > 1 ? f->budget.session->threads : 1, p.n_tasks,
				  run_task, &p);
		done = collect(&p);
	}
	/* Only now: a file loaded twice is one module. */
	for (uint32_t i = first; !fathom_name_set_has_others(names) && i < f->n_modules; i++)
		if (which != FATHOM_TABLES_DYNAMIC && is_asked(&p, i))
			atomic_fetch_add(&f->modules[i].module->name_passes, 1);
	for (size_t i = 0; i < p.n_tasks; i++)
		fathom_budget_free(&f->budget, &p.tasks[i].found);
	free(p.tasks);
	return done ? FATHOM_OK : FATHOM_E_MEMORY;
}
