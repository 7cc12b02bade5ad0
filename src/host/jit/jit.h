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
#ifndef FATHOM_JIT_H
#define FATHOM_JIT_H

#include "../space/space_batch.h"

struct fathom_jit;

/* Answers the @n @places of @addresses, all in executable memory without a module. */
fathom_err fathom_jit_answer(struct fathom_space_batch *b,
			     const struct fathom_symbolize_options *options,
			     const uint64_t *addresses, uint32_t *places, size_t n,
			     struct fathom_answers *answers);

/* Code that a program has made itself: where it is, and its symbol, which may start elsewhere. */
struct fathom_jit_code {
	uint64_t start; /* avma */
	uint64_t end;
	const struct fathom_symbol_hit *symbol;
};

/*
 * Calls @fn for all code that jitdumps and perf maps name now, in the order of addresses, until it
 * returns false. Nothing of what did not run on this machine. FATHOM_E_MEMORY.
 */
fathom_err fathom_jit_each(struct fathom_space *s, const struct fathom_maps *maps,
			   bool (*fn)(const struct fathom_jit_code *code, void *data), void *data);

/* Frees what is kept, which may be NULL. */
void fathom_jit_destroy(struct fathom_jit *jit);

#endif
