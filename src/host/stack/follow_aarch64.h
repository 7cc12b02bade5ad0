/* SPDX-License-Identifier: MIT */
/*
 * Unwinds one frame of aarch64 code that has no call frame information, as follow_code.h does for
 * x86: follows the instructions from the pc on all ways to the function's returns.
 *
 * The compiler is believed in three points: calls return, and keep the stack pointer and the
 * callee-saved registers; functions save these, and the return address, by storing them at
 * addresses made of the stack or frame pointer; br leads to another function by x16 and x17, as
 * stubs do, and within its function by all other registers.
 */
#ifndef FATHOM_STACK_FOLLOW_AARCH64_H
#define FATHOM_STACK_FOLLOW_AARCH64_H

#include "safe/unwind/step.h"

struct fathom_stack_code;

/*
 * Makes @r the registers of the caller, as fathom_follow_to_return() does, and adds to *@cost the
 * number of instructions that were followed.
 */
enum fathom_stop fathom_follow_aarch64(const struct fathom_unwind_arch *arch,
				       const struct fathom_step_memory *m, uint64_t *cost,
				       struct fathom_registers *r);

/* Decodes the 4 bytes at @code, an instruction at @avma, for where it leads: size, flow, target. */
void fathom_aarch64_flow(const uint8_t *code, uint64_t avma, struct fathom_stack_code *ret);

/*
 * If the 16 bytes at @code are a stub of a PLT at @avma, which jumps to the address in a slot,
 * returns true and the slot's avma.
 */
bool fathom_aarch64_slot(const uint8_t *code, uint64_t avma, uint64_t *ret);

#endif
