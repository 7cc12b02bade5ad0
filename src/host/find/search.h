/* SPDX-License-Identifier: MIT */
/*
 * One search of fathom_find(): what its parts share. search.c runs it; table_search.c looks in
 * symbol tables, source_lines.c and inlined_copies.c in the debug information; rank.c says what the
 * dynamic linker of a process would answer, places.c where that really is; kernel_search.c searches
 * the kernel, jit_search.c adds code that the program has made itself.
 */
#ifndef FATHOM_FIND_SEARCH_H
#define FATHOM_FIND_SEARCH_H

#include "fathom/find.h"
#include "host/base/array.h"
#include "host/find/name_set.h"
#include "host/find/query.h"
#include "host/jit/jit.h"
#include "host/module/budget.h"
#include "host/module/module.h"
#include "host/runtime/runtime.h"
#include "host/symbol/dynsym.h"
#include "host/target/target.h"

/* A module that is searched. */
struct fathom_find_module {
	struct fathom_module *module;
	const char *path;
	const char *soname; /* NULL: it has none */
	uint64_t bias;      /* 0 in a file */
	bool is_part;       /* only some of its pages are mapped at this bias */
	uint64_t low;       /* of the kernel's image: where it is, avma; else 0 */
	uint64_t high;
	const uint64_t *sections; /* of a module of the kernel: avma of each; 0: not loaded */
	size_t jit;               /* number in the search of JIT code + 1; 0: of a file */
	uint32_t order; /* in which the dynamic linker searches it; FATHOM_NONE: it does not */
	const struct fathom_dynsym *dynsym;
};

/* A symbol that fits a query. */
struct fathom_candidate {
	uint32_t query;
	uint32_t module;
	uint32_t table; /* of the module's symbols */
	uint32_t number;
	struct fathom_symbol symbol;
	uint64_t svma;
	struct fathom_str name; /* as linked, without version */
	struct fathom_str version;
	bool is_default;
	uint8_t verdict; /* enum fathom_dlsym_verdict */
	uint32_t rank;
};

struct fathom_candidates {
	FATHOM_ARRAY_OF(struct fathom_candidate);
};

/* What becomes of the candidates. */
enum fathom_find_yield {
	FATHOM_YIELD_MATCHES, /* each is a match */
	/*
	 * The first of each name is a match without texts, and so are those beside it if it is
	 * local: static functions of several source files.
	 */
	FATHOM_YIELD_ADDRESSES,
};

struct fathom_find {
	struct fathom_budget budget; /* and the session */
	struct fathom_notes *notes;
	struct fathom_find_query *queries; /* and one more behind them: jit_search.c */
	size_t n_queries;
	struct fathom_find_module *modules;
	size_t n_modules;
	size_t cap_modules;
	struct fathom_view *view;
	struct fathom_jit_process *process; /* NULL: it is none, and was none */
	bool failed;                        /* no memory for a module */
	struct fathom_jit_search *jit;      /* NULL: there is no such code, or nobody asks */
	bool seeks_lists;                   /* the query behind the others is asked, too */
	enum fathom_find_yield yield;
	uint32_t flags;
	uint32_t limit;
	int32_t tid;      /* whose copies of TLS symbols are asked for; 0: all */
	int32_t main_tid; /* of the process; 0: not known, -1: not looked for yet */
	struct fathom_matches *matches;
	uint32_t *n_matches; /* of each query */
	struct fathom_candidates candidates;
	struct fathom_runtime runtime; /* its modules are the first of these; none in a file */
};

/* Memory of the matches, which lives as long as they do; NULL without memory or room for it. */
void *fathom_find_alloc(struct fathom_find *f, size_t size);

/* Which tables a pass is over. */
enum fathom_find_tables {
	FATHOM_TABLES_ALL,
	FATHOM_TABLES_DYNAMIC, /* those that the dynamic linker looks names up in */
	FATHOM_TABLES_OTHERS,
};

/* Adds the symbols in @which tables of modules from @first on that fit queries of @names. */
fathom_err fathom_find_tables(struct fathom_find *f, const struct fathom_name_set *names,
			      enum fathom_find_tables which, uint32_t first);

/* Orders the candidates, each once, and gives them ranks. FATHOM_E_MEMORY. */
fathom_err fathom_find_rank(struct fathom_find *f);

/* Adds the matches of the candidates, which have their ranks. FATHOM_E_MEMORY. */
fathom_err fathom_find_emit(struct fathom_find *f);

/*
 * Adds the matches of @c, which all are like @m: one, but for TLS symbols in a process.
 * FATHOM_E_MEMORY.
 */
fathom_err fathom_find_place(struct fathom_find *f, const struct fathom_candidate *c,
			     struct fathom_match *m);

/* The code of the lines that are asked for. */
fathom_err fathom_find_lines(struct fathom_find *f);

/* The inlined copies of functions. */
fathom_err fathom_find_inlined(struct fathom_find *f);

/*
 * Adds a copy of @m, whose strings need not stay, to the matches: false without memory. Its query
 * has one more match then.
 */
bool fathom_find_add(struct fathom_find *f, const struct fathom_match *m);

/* The same string, as long as the matches live; NULL without memory, or for data NULL. */
const char *fathom_find_keep(struct fathom_find *f, struct fathom_str s);

/* Adds a module to those that are searched; false without memory. @path need not stay. */
bool fathom_find_add_module(struct fathom_find *f, struct fathom_module *module, const char *path,
			    uint64_t bias);

/*
 * Names of code that the program has made itself, if there is any and somebody asks. What tells of
 * it has to be found in all modules: that is done with the first pass over their tables, before
 * which this is called. Between that and the next one the modules of such code are added.
 */
void fathom_find_seek_jit(struct fathom_find *f);
fathom_err fathom_find_add_jit(struct fathom_find *f);

/* Whether query @query asks module @module, by the name of its file or by its soname. */
bool fathom_find_asks(const struct fathom_find *f, uint32_t query, uint32_t module);

/* Symbols from the tables of all modules, and code of lines or inlined copies. */
fathom_err fathom_find_symbols(struct fathom_find *f);
fathom_err fathom_find_debug(struct fathom_find *f);

/*
 * The same in a kernel, whose view f->view is: by kallsyms, what that does not know by the image's
 * file. A query that has no match gets its reason.
 */
fathom_err fathom_find_kernel(struct fathom_find *f);

/* What queries of lines, or where copies are looked for all, need: debug information. */
bool fathom_find_needs_debug(const struct fathom_find *f, const struct fathom_find_query *q);

/* Where @svma of module @m is. */
uint64_t fathom_find_avma(const struct fathom_find_module *m, uint64_t svma);

/* Whether what is at @svma of module @m is really there. */
bool fathom_find_is_there(struct fathom_find *f, const struct fathom_find_module *m, uint64_t svma);

/* Runs fathom_find() with options that were read. */
fathom_err fathom_find_run(struct fathom_target *target, const struct fathom_find_options *options,
			   enum fathom_find_yield yield, const char *const *queries, size_t n,
			   struct fathom_matches **ret_matches, struct fathom_errinfo *reterr);

/* Whether the query may have the match that was found; that it may not is remembered. */
bool fathom_find_has_room(struct fathom_find *f, uint32_t query);

#endif
