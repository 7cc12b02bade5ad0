/* SPDX-License-Identifier: MIT */
/*
 * Walks a stack: from the registers of a thread to its frames, the innermost first. Each step takes
 * the first of these that has an answer: call frame information; the bytes of a signal trampoline;
 * a call to an address that is no code; the code, followed to its return; a frame pointer; a
 * bounded scan for a return address. The last four must lead after a call, in executable memory.
 */
#ifndef FATHOM_STACK_WALK_H
#define FATHOM_STACK_WALK_H

#include "fathom/stack.h"
#include "host/base/array.h"
#include "host/stack/capture.h"
#include "host/space/target.h"
#include "safe/unwind/step.h"

/* A frame: what struct fathom_stack_frame says of it, without names. */
struct fathom_walk_frame {
	uint64_t pc;
	uint64_t sp;
	uint64_t fp;           /* its frame pointer register; FATHOM_NO_ADDRESS: not known */
	uint8_t kind;          /* enum fathom_pc_kind */
	uint8_t trust;         /* enum fathom_trust */
	bool is_signal_return; /* of a signal trampoline */
};

struct fathom_walk_frames {
	FATHOM_ARRAY_OF(struct fathom_walk_frame);
};

/* A thread whose stack is walked. */
struct fathom_walk {
	const struct fathom_registers *registers;
	/* copies of its stacks; what is not in them is read from the view */
	const struct fathom_stack_piece *pieces;
	uint8_t n_pieces;
	uint64_t pac_mask; /* bits that sign return addresses; 0: those of the machine */
	bool is_past;      /* the thread has run on: nothing else is read */
	bool keeps_code;   /* the code of the walks before is not read again */
	size_t max_frames;
	size_t outer_frames; /* of a longer stack, so many of the outermost ones, too */
	struct fathom_walk_frames *frames; /* the frames are appended */
	/* results */
	enum fathom_stop stop;
	enum fathom_reason reason; /* why the code is not known where the walk ended; or NONE */
	size_t n_inside;           /* frames that were found in the copies alone */
	size_t n_left_out;         /* frames that are not in @frames, after max_frames of them */
	uint8_t left_out_trust;    /* of the first guess among them, else FATHOM_TRUST_REGISTERS */
	uint64_t outside;          /* where the stack of the next frame is, if there are more */
	bool has_depth;  /* a frame was found by the depth of sp, for want of a register */
	uint64_t astray; /* the first return address that led to no code; 0: none did */
};

struct fathom_walker;

/* Prepares to walk stacks in @v. FATHOM_E_UNSUPPORTED for an unknown machine; FATHOM_E_MEMORY. */
fathom_err fathom_walker_create(struct fathom_view *v, struct fathom_walker **ret,
				struct fathom_errinfo *reterr);
void fathom_walker_destroy(struct fathom_walker *w);

/* Returns the machine of the program. */
uint32_t fathom_walker_machine(const struct fathom_walker *w);

/* Walks one stack. Fails only without memory, or as fathom_view_locate() does. */
fathom_err fathom_walker_run(struct fathom_walker *w, struct fathom_walk *walk);

/*
 * Returns whether the function of @pc, an address in it, has no caller, as its row or the program
 * says: a stack whose last frame is of it is whole.
 */
bool fathom_walker_is_outermost(struct fathom_walker *w, uint64_t pc);

#endif
