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

#include "host/target/view.h"

struct fathom_jit;

/*
 * Answers the @n @places of @addresses, all in executable memory: without a module or, @in_files,
 * in a file whose tables have no name for them. There perf maps alone are asked, and the answers
 * keep their modules: a program may have code that it has made before in its own file, as V8 has
 * its builtins.
 */
fathom_err fathom_jit_answer(struct fathom_space_batch *b, bool in_files,
			     const struct fathom_batch_options *options, const uint64_t *addresses,
			     uint32_t *places, size_t n, struct fathom_answers *answers);

/*
 * Calls @fn for all code that jitdumps and perf maps name now, or did in a snapshot, in the order
 * of addresses, until it returns false. FATHOM_E_MEMORY.
 */
fathom_err fathom_jit_each(struct fathom_space *s, const struct fathom_maps *maps,
			   fathom_code_fn fn, void *data);

/*
 * All that a program has made itself, as modules to be searched by name, whose addresses are avma:
 * the symbol files of GDB's JIT interface, as they were at one moment, and one each of what
 * jitdumps and perf maps name.
 */
struct fathom_jit_search;

/* Begins a search in @b, which has to go on as long. FATHOM_E_MEMORY. */
fathom_err fathom_jit_search_begin(struct fathom_space_batch *b, struct fathom_jit_search **ret);
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
