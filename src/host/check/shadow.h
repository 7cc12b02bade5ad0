/* SPDX-License-Identifier: MIT */
/*
 * The frames of one thread in published code, as its instructions, not its descriptions, state
 * them.
 *
 * A frame that was entered by a call is known: the return address is on top of the stack, the CFA
 * 8 bytes above it, and the registers of the caller are the registers. A frame that was entered
 * otherwise, through a shim maybe, is taken as its description has it, if that leads after a call.
 * Either way the description must then agree at each instruction, until the frame ends.
 *
 * Frames of several stacks stand in one array: signal stacks and coroutines are told apart by
 * where their frames wait. What cannot be told is not judged.
 */
#ifndef FATHOM_CHECK_SHADOW_H
#define FATHOM_CHECK_SHADOW_H

#include "fathom/jit_check.h"
#include "host/check/published.h"

/* rbx, rbp, r12 to r15 */
#define FATHOM_SHADOW_KEPT 6

struct fathom_shadow_frame {
	uint64_t cfa;
	uint64_t return_address;
	uint64_t slot;                     /* where it stands on the stack; 0: not known */
	uint64_t kept[FATHOM_SHADOW_KEPT]; /* values in the caller */
	uint32_t known;                    /* bit i: kept[i] is known */
	bool is_interrupted;               /* a signal has come before the instruction at wait_pc */
	uint64_t low;                      /* the function that runs in it, avma */
	uint64_t high;
	uint64_t last;    /* the instruction that ran last in it; 0: none */
	uint64_t wait_pc; /* where it goes on when it was left; 0: not known */
	uint64_t wait_sp;
};

struct fathom_shadow {
	FATHOM_ARRAY_OF(struct fathom_shadow_frame);
	bool is_in; /* the last frame runs now */
};

/* A break of a promise, in @function. */
struct fathom_shadow_break {
	struct fathom_jit_code_function *function;
	uint64_t address; /* of the instruction */
	uint64_t pc;      /* where it was found */
	uint64_t actual;
	uint64_t described;
	uint32_t kind; /* enum fathom_jit_finding_kind */
	uint32_t reg;
};

/* State that all threads share. */
struct fathom_shadow_work {
	const struct fathom_tracee *tracee;
	struct fathom_published *published;
	struct fathom_jit_check_result count;
	uint32_t flags; /* enum fathom_jit_check_flag */
	void (*found)(struct fathom_shadow_work *w, const struct fathom_shadow_break *b);
};

/*
 * The thread has entered published code at @r, and has not run the instruction there. @from_signal:
 * it comes from a signal handler that has returned.
 */
void fathom_shadow_enter(struct fathom_shadow *s, struct fathom_shadow_work *w,
			 const struct fathom_registers *r, bool from_signal);

/*
 * The thread has run the instruction of published code at @pc, with the stack pointer at @sp, and
 * is at @r now, in published code or not. @has_signal: a signal was delivered before.
 */
void fathom_shadow_step(struct fathom_shadow *s, struct fathom_shadow_work *w, uint64_t pc,
			uint64_t sp, const struct fathom_registers *r, bool has_signal);

/* The thread leaves published code for a while, and goes on at @pc with the stack pointer @sp. */
void fathom_shadow_wait(struct fathom_shadow *s, uint64_t pc, uint64_t sp);

/* The thread stops at @pc with the stack pointer at @sp, and may go on there. */
void fathom_shadow_pause(struct fathom_shadow *s, uint64_t pc, uint64_t sp);

#endif
