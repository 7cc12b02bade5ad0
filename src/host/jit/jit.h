/* SPDX-License-Identifier: MIT */
/*
 * Names JIT code: code that a program has made itself, in memory without a file. The program
 * describes it in one of three ways, tried in this order: GDB's JIT interface, which is current and
 * has lines; a jitdump; a perf map.
 *
 * What was read is kept between batches; a batch that looks up JIT code updates it, others cost
 * nothing. A batch takes the kept state for itself, and a concurrent batch makes its own, so none
 * waits.
 */
#ifndef FATHOM_JIT_JIT_H
#define FATHOM_JIT_JIT_H

#include "host/base/context.h"
#include "host/base/notes.h"
#include "host/base/search_paths.h"
#include "host/file/maps.h"
#include "host/module/place.h"
#include "host/symbol/tables.h"
#include "safe/base/reader.h"

struct fathom_jit;
struct fathom_jit_locator;
struct fathom_jit_owner;
struct fathom_jit_process;
struct fathom_unresolved;

/* A range of JIT code and its symbol, which may start elsewhere. */
struct fathom_jit_code {
	uint64_t start; /* avma */
	uint64_t end;
	const struct fathom_symbol_hit *symbol;
};

typedef bool (*fathom_code_fn)(const struct fathom_jit_code *code, void *data);

/* Operations of a process that naming JIT code needs; implemented above jit/. */
struct fathom_jit_process_ops {
	/*
	 * Reads the owner of the process; false if it is neither a process nor a core that names
	 * one.
	 */
	bool (*read_owner)(const struct fathom_jit_process *p, struct fathom_jit_owner *ret);
	/* Formats the root directory of its paths; false if it does not fit. */
	bool (*format_root)(const struct fathom_jit_process *p, char *path, size_t cap);
	/* Formats a path to the very file of mapping @m; false if there is none. */
	bool (*format_very_path)(const struct fathom_jit_process *p, const struct fathom_mapping *m,
				 char *path, size_t cap);
	/* Returns whether the file system of the file of mapping @m answers. */
	bool (*is_reachable)(const struct fathom_jit_process *p, const struct fathom_mapping *m);
	/* Calls @fn for each module with code. */
	fathom_err (*modules)(const struct fathom_jit_process *p, fathom_module_fn fn, void *data);
	/* Returns whether any code in memory is outside the modules' files. */
	bool (*has_code)(const struct fathom_jit_process *p);
	/* Finds which module holds @avma. */
	fathom_err (*locate)(const struct fathom_jit_process *p, uint64_t avma,
			     struct fathom_place *ret);
	/* Finds the stored JIT code at @avma; false if none was stored. */
	bool (*find_code)(const struct fathom_jit_process *p, uint64_t avma,
			  struct fathom_symbol_hit *ret);
	/* Calls @fn for all stored JIT code, in address order, until it returns false. */
	void (*each_code)(const struct fathom_jit_process *p, fathom_code_fn fn, void *data);
};

/* A live or stored process at one moment. */
struct fathom_jit_process {
	const struct fathom_jit_process_ops *ops;
	struct fathom *session;
	const struct fathom_search_paths *paths; /* of the target */
	struct fathom_notes *notes;
	const struct fathom_maps *maps;
	struct fathom_reader memory;
	_Atomic(struct fathom_jit *) *kept; /* state of an earlier batch, or NULL */
	struct fathom_jit_locator *locator; /* NULL: no code was located yet */
	bool is_live;                       /* it may change at any time */
	bool has_root;                      /* its root is not ours */
};

/*
 * Names the code of @rest, all in executable memory. Inside modules, only perf maps are used, and
 * the answers keep their modules: a program may store pre-made code in its own file, as V8 does
 * with its builtins.
 */
fathom_err fathom_jit_answer(const struct fathom_jit_process *p,
			     const struct fathom_unresolved *rest);

/*
 * Adds to @ret, the place of code at @avma in no module, what describes it. The first call reads
 * GDB's lists for all later ones; the modules live until fathom_jit_locate_end(). A key is the
 * number of a symbol file. If no symbol file tells how to unwind it, jitdumps and what the program
 * has registered with unwinders do. FATHOM_E_MEMORY.
 */
fathom_err fathom_jit_locate(struct fathom_jit_process *p, uint64_t avma, struct fathom_place *ret);
/*
 * Reads what later calls tell of as it is now: what is registered later is not seen. Nothing is
 * read if the process is not live or has no memory that may hold code that it makes.
 * FATHOM_E_MEMORY.
 */
fathom_err fathom_jit_locate_begin(struct fathom_jit_process *p);
/* Returns whether all that was told of code so far is true now, and nothing was missed. */
bool fathom_jit_stayed(const struct fathom_jit_process *p);
/* Ends locating, and keeps for the next batch what was read. */
void fathom_jit_locate_end(struct fathom_jit_process *p);

/*
 * Calls @fn for all code that jitdumps and perf maps name now, or named in a snapshot, in address
 * order, until it returns false. FATHOM_E_MEMORY.
 */
fathom_err fathom_jit_each(const struct fathom_jit_process *p, fathom_code_fn fn, void *data);

/*
 * All JIT code of a program as modules to search by name, whose addresses are avma: a consistent
 * snapshot of the symbol files of GDB's JIT interface, one module of all jitdumps, and one of all
 * perf maps.
 */
struct fathom_jit_search;

/* Begins a search in @p, which must outlive it. FATHOM_E_MEMORY. */
fathom_err fathom_jit_search_begin(const struct fathom_jit_process *p,
				   struct fathom_jit_search **ret);
/* Ends the search and frees its modules; @s may be NULL. */
void fathom_jit_search_end(struct fathom_jit_search *s);

size_t fathom_jit_search_count(const struct fathom_jit_search *s);
/* Returns module @i, or NULL if it could not be made. */
struct fathom_module *fathom_jit_search_module(const struct fathom_jit_search *s, size_t i);
/*
 * Returns whether the code of module @i at @avma is current: neither newer code nor a file is
 * there, except that a perf map may name code that its file does not.
 */
bool fathom_jit_search_holds(const struct fathom_jit_search *s, size_t i, uint64_t avma);
/* Returns whether some module is missing because it kept changing. */
bool fathom_jit_search_has_changed(const struct fathom_jit_search *s);

/* Frees the kept state; @jit may be NULL. */
void fathom_jit_destroy(struct fathom_jit *jit);

#endif
