/* SPDX-License-Identifier: MIT */
/*
 * Names of JIT code, whose modules are searched like those of files. The pass over the files'
 * tables also finds the files that have GDB's JIT list.
 */
#include <stdlib.h>

#include "host/find/search.h"

/* Name of modules without a file. */
#define JIT "[jit]"
/* The head of every list (GDB manual, "JIT Compilation Interface"). */
#define LIST "__jit_debug_descriptor"

/* Returns whether a query asks for JIT code, which the dynamic linker does not know. */
static bool is_asked(const struct fathom_find *f)
{
	for (size_t i = 0; i < f->n_queries && !(f->flags & FATHOM_FIND_EXPORTED); i++)
		if (f->queries[i].kind != FATHOM_QUERY_BAD &&
		    fathom_find_query_takes_module(&f->queries[i], JIT))
			return true;
	return false;
}

static bool is_wanted(const struct fathom_find *f)
{
	return f->process && is_asked(f) && f->process->ops->has_code(f->process);
}

void fathom_find_seek_jit(struct fathom_find *f)
{
	f->seeks_lists = is_wanted(f);
	f->queries[f->n_queries] = (struct fathom_find_query){ .kind = FATHOM_QUERY_NAME,
							       .text = { LIST, sizeof LIST - 1 } };
}

/* Returns whether the .dynsym of @m has a list. A pass over the other tables does not tell. */
static bool may_export_list(const struct fathom_find_module *m)
{
	struct fathom_symbol symbol;

	return m->dynsym->number != FATHOM_NONE &&
	       (!m->dynsym->has_hash ||
		fathom_dynsym_find(m->dynsym, (struct fathom_str){ LIST, sizeof LIST - 1 },
				   &symbol));
}

/* Takes the candidates of the internal query; modules without one have no list. */
static fathom_err take_lists(struct fathom_find *f)
{
	struct fathom_candidate *c = f->candidates.items;
	bool *has = calloc(f->n_modules + 1, sizeof *has);
	size_t n = 0;

	if (!has)
		return FATHOM_E_MEMORY;
	for (size_t i = 0; i < f->candidates.n; i++)
		if (c[i].query == f->n_queries)
			has[c[i].module] = true;
		else
			c[n++] = c[i];
	f->candidates.n = n;
	for (size_t i = 0; i < f->n_modules; i++)
		if (!has[i] && !may_export_list(&f->modules[i]))
			fathom_module_set_no_jit(f->modules[i].module);
	free(has);
	f->seeks_lists = false;
	/* Its name stays among those of the next pass, over JIT code. */
	f->queries[f->n_queries].is_answered = true;
	return FATHOM_OK;
}

/* The dynamic linker does not know JIT code, whatever its files say. */
static const struct fathom_dynsym none = { .number = FATHOM_NONE };

static fathom_err add_modules(struct fathom_find *f)
{
	for (size_t i = 0; i < fathom_jit_search_count(f->jit); i++) {
		struct fathom_module *module = fathom_jit_search_module(f->jit, i);

		if (!module)
			continue;
		if (!fathom_find_add_module(f, module, JIT, 0))
			return FATHOM_E_MEMORY;
		f->modules[f->n_modules - 1].is_part = true;
		f->modules[f->n_modules - 1].jit = i + 1;
		f->modules[f->n_modules - 1].dynsym = &none;
	}
	return FATHOM_OK;
}

fathom_err fathom_find_add_jit(struct fathom_find *f)
{
	if (f->seeks_lists)
		FATHOM_TRY(take_lists(f));
	else if (!is_wanted(f))
		return FATHOM_OK;
	FATHOM_TRY(fathom_jit_search_begin(f->process, &f->jit));
	return add_modules(f);
}
