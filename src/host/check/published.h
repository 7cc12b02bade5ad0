/* SPDX-License-Identifier: MIT */
/*
 * The code that a stopped program has published through GDB's JIT interface: each symbol file as a
 * module, and of each pc the function and the row of call frame information. Where symbol files
 * overlap, the newest holds.
 */
#ifndef FATHOM_CHECK_PUBLISHED_H
#define FATHOM_CHECK_PUBLISHED_H

#include "host/base/claims.h"
#include "host/tracer/tracee.h"
#include "host/jit/gdb_list.h"
#include "safe/unwind/row.h"

struct fathom_published;
struct fathom_target;

/* A function that is or was published: a name and where its code is. */
struct fathom_jit_code_function {
	struct fathom_jit_code_function *next; /* in its bucket */
	uint64_t low;                          /* avma */
	uint64_t high;
	char *name; /* as linked; "" if it has none */
	bool was_run;
	bool was_found; /* a finding was reported */
	bool lacks_row; /* an instruction without a row was reported */
};

/* Description of one pc, as it is published. */
struct fathom_jit_code_pc {
	uint64_t pc;
	struct fathom_jit_code_function *function;
	bool has_row;
	struct fathom_row row;
};

/* FATHOM_E_MEMORY. @t must outlive it. */
fathom_err fathom_published_create(const struct fathom_tracee *t, struct fathom_target *target,
				   struct fathom_published **ret);
void fathom_published_destroy(struct fathom_published *p);

/*
 * Adds the symbol file of @entry, at @avma in a list, or makes it the newest. One that cannot be
 * read has no code. FATHOM_E_MEMORY.
 */
fathom_err fathom_published_add(struct fathom_published *p, uint64_t avma,
				const struct fathom_gdb_entry *entry);
/* Removes the symbol file of the entry at @avma, if it was added. FATHOM_E_MEMORY. */
fathom_err fathom_published_remove(struct fathom_published *p, uint64_t avma);

/* Adds all ranges of code (avma), unsorted, to @ret. FATHOM_E_MEMORY. */
fathom_err fathom_published_ranges(const struct fathom_published *p,
				   struct fathom_claim_array *ret);

/* Returns what is published of @pc, valid until the next call; NULL if nothing is. */
const struct fathom_jit_code_pc *fathom_published_at(struct fathom_published *p, uint64_t pc);

#endif
