/* SPDX-License-Identifier: MIT */
/*
 * Calls of libraries, of programs without sites: slots of the global offset table by which a module
 * calls functions of others (sites/call_slots.h).
 *
 * A slot leads to a stub of ours (of some the operand of the module's own stub leads to a word of
 * ours that does), which calls the hook and jumps to where a word of ours leads. The
 * slot's relocation is changed to be of that word: whatever the dynamic linker finds, now or when
 * the function is first called, it writes there. Nothing but calls reads such slots: pointers to
 * functions stay equal.
 */
#ifndef FATHOM_TRACE_GOT_SLOTS_H
#define FATHOM_TRACE_GOT_SLOTS_H

#include "fathom/trace.h"
#include "host/base/array.h"
#include "host/code/x86_64/x86_stub.h"
#include "host/patch/tracee_text.h"
#include "host/trace/program.h"

/* A slot that leads to a stub. */
struct fathom_hooked_got_slot {
	uint64_t avma;       /* of the slot */
	uint64_t relocation; /* avma of what its relocation says it is at */
	uint64_t operand;    /* avma of the operand that is changed instead of the slot; 0: none */
	uint64_t word;       /* avma of our word */
	uint64_t stub;       /* avma of our stub */
	uint64_t bias;       /* of its module */
	uint64_t content;    /* that the word gets: where the slot leads, or the stub */
};

/* The slots of a module that lead to stubs. Copies of a process share them. */
struct fathom_hooked {
	uint32_t references;
	FATHOM_ARRAY_OF(struct fathom_hooked_got_slot);
};

void fathom_hooked_acquire(struct fathom_hooked *hooked);
void fathom_hooked_release(struct fathom_hooked *hooked);

/*
 * Leads @slot of a module of @p with @bias to where it would lead without one who has traced @p
 * before, and was killed; returns whether it led elsewhere.
 */
bool fathom_got_slots_heal(const struct fathom_traced *p, const struct fathom_call_slot *slot,
			   uint64_t bias);

/*
 * Reads what slot @slot of a module of @p with @bias holds, by @relocations and
 * @slots; stub and word are not set. False if calls through it are not recorded: it is refused,
 * leads nowhere, or the module is not the file's.
 */
bool fathom_got_slots_take(const struct fathom_traced *p, struct fathom_text_memory *relocations,
			   struct fathom_text_memory *slots, const struct fathom_call_slot *slot,
			   uint64_t bias, struct fathom_hooked_got_slot *ret);

/*
 * Plans that @slot, whose stub and word are chosen, leads to its stub, which calls @hook: stub and
 * word in @stubs, which is made first, what leads there in @slots. *@ret_fits: nothing is too far.
 * False without memory.
 */
bool fathom_got_slots_plan(const struct fathom_hooked_got_slot *slot, uint64_t hook,
			   struct fathom_text_plan *stubs, struct fathom_text_plan *slots,
			   bool *ret_fits);
/*
 * Leads all of @hooked to where they would lead without us. @stands: nothing runs that uses this
 * memory; else what is beside the slots may change meanwhile, and they are changed one by one.
 */
void fathom_got_slots_undo(const struct fathom_tracee *t, const struct fathom_hooked *hooked,
			   bool stands);

/* Where the stub's call of the hook returns to, from its beginning on. */
#define FATHOM_SLOT_RETURN FATHOM_X86_CALL_STUB_BACK

#endif
