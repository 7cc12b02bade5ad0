/* SPDX-License-Identifier: MIT */
/*
 * Calls of libraries, of programs without sites: slots of the global offset table by which the
 * procedure linkage table calls functions of other modules (System V ABI, AMD64 supplement 1.0,
 * section 5.2).
 *
 * A slot leads to a stub of ours, which calls the hook and jumps to where a word of ours leads. The
 * slot's relocation is changed to be of that word: whatever the dynamic linker finds, now or when
 * the function is first called, it writes there. No other code reads such slots: pointers to
 * functions stay equal.
 */
#ifndef FATHOM_TRACE_SLOTS_H
#define FATHOM_TRACE_SLOTS_H

#include "host/base/memory.h"
#include "host/trace/program.h"

/* A slot that leads to a stub. */
struct fathom_call_slot {
	uint64_t avma;       /* of the slot */
	uint64_t relocation; /* avma of what its relocation says it is at */
	uint64_t word;       /* avma of our word */
	uint64_t stub;       /* avma of our stub */
	uint64_t bias;       /* of its module */
	const char *name;    /* of the function, as linked */
};

struct fathom_call_slots {
	FATHOM_ARRAY_OF(struct fathom_call_slot);
};

/* The slots of a module that lead to stubs. Copies of a process share them. */
struct fathom_hooked {
	uint32_t references;
	struct fathom_call_slots slots; /* without names */
};

void fathom_hooked_acquire(struct fathom_hooked *hooked);
void fathom_hooked_release(struct fathom_hooked *hooked);

/*
 * Finds the slots of the module of @p whose file is at @path, as @p sees it; @bias is its bias.
 * Names are allocated in @arena. False if it has none, or its tables cannot be read.
 */
bool fathom_slots_find(const struct fathom_traced *p, const char *path, uint64_t bias,
		       struct fathom_arena *arena, struct fathom_call_slots *ret);

/* Has @slot, whose stub and word are chosen, lead to its stub, which calls @hook. */
bool fathom_slots_hook(const struct fathom_traced *p, const struct fathom_call_slot *slot,
		       uint64_t hook);
/* Has it lead to where it would without us. */
bool fathom_slots_undo(const struct fathom_tracee *t, const struct fathom_call_slot *slot);

/* Where the stub's call of the hook returns to, from its beginning on. */
#define FATHOM_SLOT_RETURN 5

#endif
