/* SPDX-License-Identifier: MIT */
/*
 * Steps to the caller by the instructions that end a function, for code that nothing describes:
 * stubs that python's -X perf makes, functions of musl; and where gcc describes it wrong, after a
 * stack that was realigned. No decoder is needed: only these
 * instructions are known, and any other one ends the step. x86-64; not handled: other machines.
 *
 * Instructions: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_UNWIND_EPILOGUE_H
#define FATHOM_UNWIND_EPILOGUE_H

#include "safe/unwind/step.h"

/*
 * Runs add $N,%rsp; lea N(register),%rsp; pop; leave and no-ops between them, from r->pc to ret.
 * Makes @r the caller's registers: those that are not callee-saved become unknown. Returns
 * FATHOM_STOP_NO_RULE if another instruction comes, FATHOM_STOP_REGISTER or FATHOM_STOP_UNREADABLE;
 * then @r is unchanged. The caller checks the return address.
 */
enum fathom_stop fathom_step_epilogue(const struct fathom_unwind_arch *arch,
				      const struct fathom_step_memory *m,
				      struct fathom_registers *r);

#endif
