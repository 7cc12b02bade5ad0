/* SPDX-License-Identifier: MIT */
/*
 * Keeps what stacks are found by, for a snapshot: registers and copied stacks of the threads, and
 * which other memory the walks have read, such as code of JIT compilers.
 */
#ifndef FATHOM_STACK_KEEP_H
#define FATHOM_STACK_KEEP_H

#include "fathom/stack.h"
#include "host/base/array.h"
#include "host/space/target.h"

struct fathom_keep {
	struct {
		FATHOM_ARRAY_OF(struct fathom_stored_thread);
	} threads;
	struct {
		FATHOM_ARRAY_OF(uint64_t);
	} pages; /* avmas of the pages, as they were read */
	struct {
		FATHOM_ARRAY_OF(uint8_t *);
	} stacks;                  /* copies that threads point to */
	struct fathom_reader from; /* the view's own memory, while a walk is recorded */
	struct fathom_reader *recorded;
	bool failed; /* out of memory */
};

/* Forgets all that is kept. */
void fathom_keep_clear(struct fathom_keep *k);
void fathom_keep_deinit(struct fathom_keep *k);

/* Records what is read through @memory until fathom_keep_pause(). @k may be NULL. */
void fathom_keep_record(struct fathom_keep *k, struct fathom_reader *memory);
void fathom_keep_pause(struct fathom_keep *k);

/* Takes over @stack, the copy of a stack, which may be NULL; frees it without memory. */
fathom_err fathom_keep_own(struct fathom_keep *k, uint8_t *stack);

/* Keeps @thread and its registers, which may be NULL; the bytes of its stack must outlive @k. */
fathom_err fathom_keep_thread(struct fathom_keep *k, const struct fathom_thread *thread,
			      const struct fathom_registers *r, uint64_t pac_mask,
			      const struct fathom_stack_pieces *stack);

/* Returns what is kept; it points into @k. Sorts the pages. */
fathom_err fathom_keep_finish(struct fathom_keep *k, struct fathom_stored_stacks *ret);

#endif
