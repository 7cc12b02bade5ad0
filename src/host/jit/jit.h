/* SPDX-License-Identifier: MIT */
/*
 * Names of code that a program has made itself, in memory that no file is behind. The program says
 * what it is in one of three ways, which are asked in this order: GDB's JIT interface, which is
 * true of now and has lines; a jitdump; a perf map.
 *
 * What was read is kept between batches, and brought up to date by a batch that asks about such
 * code; others cost nothing. A batch takes what is kept for itself: another at the same time
 * makes its own, so that none waits.
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
struct fathom_jit_owner;
struct fathom_jit_process;
struct fathom_rest;

/* Code that a program has made itself: where it is, and its symbol, which may start elsewhere. */
struct fathom_jit_code {
	uint64_t start; /* avma */
	uint64_t end;
	const struct fathom_symbol_hit *symbol;
};

typedef bool (*fathom_code_fn)(const struct fathom_jit_code *code, void *data);

/* What has to be known of a process to name its code; the room above answers. */
struct fathom_jit_process_ops {
	/* Reads who owns the process; false if it is neither a process nor a core that says. */
	bool (*read_owner)(const struct fathom_jit_process *p, struct fathom_jit_owner *ret);
	/* Formats the directory that its paths start at; false if that does not fit. */
	bool (*format_root)(const struct fathom_jit_process *p, char *path, size_t cap);
	/* Formats a path that leads to the very file of mapping @m; false if there is none. */
	bool (*format_very_path)(const struct fathom_jit_process *p, const struct fathom_mapping *m,
				 char *path, size_t cap);
	/* Returns whether the file system of the file of mapping @m answers. */
	bool (*is_reachable)(const struct fathom_jit_process *p, const struct fathom_mapping *m);
	/* Calls @fn for each module that has code. */
	fathom_err (*modules)(const struct fathom_jit_process *p, fathom_module_fn fn, void *data);
	/* Returns whether there is code in memory that is not of a module's file. */
	bool (*has_code)(const struct fathom_jit_process *p);
	/* Finds which module holds @avma. */
	fathom_err (*locate)(const struct fathom_jit_process *p, uint64_t avma,
			     struct fathom_place *ret);
	/* Finds what was stored of the code at @avma; false if nothing was. */
	bool (*find_code)(const struct fathom_jit_process *p, uint64_t avma,
			  struct fathom_symbol_hit *ret);
	/* Calls @fn for all that was stored, in the order of addresses, until it returns false. */
	void (*each_code)(const struct fathom_jit_process *p, fathom_code_fn fn, void *data);
};

/* A process, or what was stored of one, at one moment. */
struct fathom_jit_process {
	const struct fathom_jit_process_ops *ops;
	struct fathom *session;
	const struct fathom_search_paths *paths; /* of the target */
	struct fathom_notes *notes;
	const struct fathom_maps *maps;
	struct fathom_reader memory;
	_Atomic(struct fathom_jit *) *kept; /* what an earlier batch has read, or NULL */
	bool is_live;                       /* it may change meanwhile */
	bool has_root;                      /* its paths do not start where ours do */
};

/*
 * Names the code of @rest, all in executable memory. Of what is in modules perf maps alone are
 * asked, and the answers keep their modules: a program may have code that it has made before in its
 * own file, as V8 has its builtins.
 */
fathom_err fathom_jit_answer(const struct fathom_jit_process *p, const struct fathom_rest *rest);

/*
 * Calls @fn for all code that jitdumps and perf maps name now, or did in a snapshot, in the order
 * of addresses, until it returns false. FATHOM_E_MEMORY.
 */
fathom_err fathom_jit_each(const struct fathom_jit_process *p, fathom_code_fn fn, void *data);

/*
 * All that a program has made itself, as modules to be searched by name, whose addresses are avma:
 * the symbol files of GDB's JIT interface, as they were at one moment, and one each of what
 * jitdumps and perf maps name.
 */
struct fathom_jit_search;

/* Begins a search in @p, which has to stay as long. FATHOM_E_MEMORY. */
fathom_err fathom_jit_search_begin(const struct fathom_jit_process *p,
				   struct fathom_jit_search **ret);
/* Ends it: the modules are gone. NULL is nothing. */
void fathom_jit_search_end(struct fathom_jit_search *s);

size_t fathom_jit_search_count(const struct fathom_jit_search *s);
/* NULL when it cannot be had. */
struct fathom_module *fathom_jit_search_module(const struct fathom_jit_search *s, size_t i);
/*
 * Whether what module @i has at @avma is what is there: nothing newer, and no file's, but where a
 * file has no name for code that a perf map names.
 */
bool fathom_jit_search_holds(const struct fathom_jit_search *s, size_t i, uint64_t avma);
/* Whether some module is missing because it changed again and again. */
bool fathom_jit_search_has_changed(const struct fathom_jit_search *s);

/* Frees what is kept, which may be NULL. */
void fathom_jit_destroy(struct fathom_jit *jit);

#endif
