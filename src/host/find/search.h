/* SPDX-License-Identifier: MIT */
/*
 * The shared state of one search of fathom_find(). search.c runs it; table_search.c searches symbol
 * tables; source_lines.c and inlined_copies.c search debug information; rank.c decides what the
 * dynamic linker would bind; places.c finds run-time addresses; kernel_search.c searches the
 * kernel; jit_search.c adds JIT code.
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
#include "host/space/target.h"

/* A searched module. */
struct fathom_find_module {
	struct fathom_module *module;
	const char *path;
	const char *soname; /* NULL: none */
	uint64_t bias;      /* 0 for a file target */
	bool is_part;       /* only some pages are mapped at this bias */
	uint64_t low;       /* kernel image: its avma; else 0 */
	uint64_t high;
	const uint64_t *sections; /* kernel module: avma of each section; 0: not loaded */
	size_t jit;               /* index in the JIT search + 1; 0: a file */
	uint32_t order; /* position in the dynamic linker's search order; FATHOM_NONE: not in it */
	const struct fathom_dynsym *dynsym;
};

/* A symbol that fits a query, not yet ranked. */
struct fathom_candidate {
	uint32_t query;
	uint32_t module;
	uint32_t table; /* table of the module's symbols */
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

/* Kinds of results to make of the candidates. */
enum fathom_find_yield {
	FATHOM_YIELD_MATCHES, /* every candidate becomes a match */
	/*
	 * The first of each name becomes a match without texts; so do its siblings if it is local
	 * (static functions of several source files).
	 */
	FATHOM_YIELD_ADDRESSES,
};

struct fathom_find {
	struct fathom_budget budget; /* and the session */
	struct fathom_notes *notes;
	struct fathom_find_query *queries; /* n_queries, and one more for jit_search.c */
	size_t n_queries;
	struct fathom_find_module *modules;
	size_t n_modules;
	size_t cap_modules;
	struct fathom_view *view;
	struct fathom_jit_process *process; /* NULL: not a process or core */
	bool failed;                        /* out of memory for a module */
	struct fathom_jit_search *jit;      /* NULL: no JIT code, or not asked for */
	bool seeks_lists;                   /* the extra query is active */
	enum fathom_find_yield yield;
	uint32_t flags;
	uint32_t limit;
	int32_t tid;      /* thread whose TLS copies are wanted; 0: all */
	int32_t main_tid; /* main thread; 0: not known, -1: not yet read */
	struct fathom_matches *matches;
	uint32_t *n_matches; /* of each query */
	struct fathom_candidates candidates;
	struct fathom_runtime runtime; /* its modules are the first of modules; none in a file */
};

/* Allocates memory that lives as long as the matches; NULL without memory or budget. */
void *fathom_find_alloc(struct fathom_find *f, size_t size);

/* The tables that a pass searches. */
enum fathom_find_tables {
	FATHOM_TABLES_ALL,
	FATHOM_TABLES_DYNAMIC, /* the dynamic linker's own tables */
	FATHOM_TABLES_OTHERS,
};

/*
 * Adds candidates: symbols in @which tables of modules from @first on that fit queries of @names.
 */
fathom_err fathom_find_tables(struct fathom_find *f, const struct fathom_name_set *names,
			      enum fathom_find_tables which, uint32_t first);

/* Sorts, deduplicates and ranks the candidates. FATHOM_E_MEMORY. */
fathom_err fathom_find_rank(struct fathom_find *f);

/* Adds the matches of the ranked candidates. FATHOM_E_MEMORY. */
fathom_err fathom_find_emit(struct fathom_find *f);

/*
 * Adds the matches of @c, made from @m: one, or several for a TLS symbol in a process.
 * FATHOM_E_MEMORY.
 */
fathom_err fathom_find_place(struct fathom_find *f, const struct fathom_candidate *c,
			     struct fathom_match *m);

/* Finds the code of line queries. */
fathom_err fathom_find_lines(struct fathom_find *f);

/* Finds the inlined copies of functions. */
fathom_err fathom_find_inlined(struct fathom_find *f);

/*
 * Adds a copy of @m, including its strings, to the matches and counts it for its query; returns
 * false without memory.
 */
bool fathom_find_add(struct fathom_find *f, const struct fathom_match *m);

/* Copies @s to memory of the matches; returns NULL without memory, or if data is NULL. */
const char *fathom_find_keep(struct fathom_find *f, struct fathom_str s);

/* Adds a module to the search and copies @path; returns false without memory. */
bool fathom_find_add_module(struct fathom_find *f, struct fathom_module *module, const char *path,
			    uint64_t bias);

/*
 * Prepares the search of JIT code, if a query asks for it. The first pass over all modules also
 * looks for GDB's JIT list, so this is called before it. The JIT modules are added between the
 * first pass and the next.
 */
void fathom_find_seek_jit(struct fathom_find *f);
fathom_err fathom_find_add_jit(struct fathom_find *f);

/* Returns whether the library of query @query matches module @module by file name or soname. */
bool fathom_find_asks(const struct fathom_find *f, uint32_t query, uint32_t module);

/* Finds symbols, lines and inlined copies in all modules. */
fathom_err fathom_find_symbols(struct fathom_find *f);
fathom_err fathom_find_debug(struct fathom_find *f);

/*
 * Searches the kernel with the view f->view: kallsyms first, then the image's file for names that
 * kallsyms lacks. Gives a query without a match its reason.
 */
fathom_err fathom_find_kernel(struct fathom_find *f);

/* Returns whether @q needs debug information: a line query, or any query for inlined copies. */
bool fathom_find_needs_debug(const struct fathom_find *f, const struct fathom_find_query *q);

/* Returns the avma of @svma in module @m. */
uint64_t fathom_find_avma(const struct fathom_find_module *m, uint64_t svma);

/* Returns whether @svma of module @m is really mapped. */
bool fathom_find_is_there(struct fathom_find *f, const struct fathom_find_module *m, uint64_t svma);

/* Runs fathom_find() with validated options. */
fathom_err fathom_find_run(struct fathom_target *target, const struct fathom_find_options *options,
			   enum fathom_find_yield yield, const char *const *queries, size_t n,
			   struct fathom_matches **ret_matches, struct fathom_errinfo *reterr);

/* Returns whether the query may have another match; if not, marks it as cut. */
bool fathom_find_has_room(struct fathom_find *f, uint32_t query);

#endif
