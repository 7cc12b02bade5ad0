/* SPDX-License-Identifier: MIT */
/*
 * One step of a walk: from the registers of a frame to those of its caller.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_UNWIND_STEP_H
#define FATHOM_UNWIND_STEP_H

#include "safe/unwind/expression.h"

/* The memory that a walk reads. */
struct fathom_step_memory {
	const struct fathom_reader *stack; /* stack and data */
	const struct fathom_reader *code;
	bool swap; /* the target's byte order is not this machine's */
};

/*
 * Applies @row, of a module at @bias, to @r, which becomes the caller's registers: pc is the return
 * address (without PAC), sp the CFA or what the row says of it. Registers that the row does not
 * recover become unknown, and so does a link register, which the call has overwritten. Returns
 * FATHOM_STOP_NONE; FATHOM_STOP_ENTRY if the row says that there is no caller;
 * FATHOM_STOP_REGISTER, FATHOM_STOP_UNREADABLE or FATHOM_STOP_NO_RULE. @r is unchanged unless it is
 * FATHOM_STOP_NONE.
 *
 * A return address of 0 becomes the pc like any other one. Programs that make stacks end them so,
 * and programs that damage stacks write zeros: the caller tells them apart (safe/unwind/ends.h).
 */
enum fathom_stop fathom_step_row(const struct fathom_row *row, uint64_t bias,
				 const struct fathom_unwind_arch *arch,
				 const struct fathom_step_memory *m, struct fathom_registers *r);

/* Returns whether at @pc the code is by which signal handlers return, a signal trampoline. */
bool fathom_step_is_signal_return(const struct fathom_unwind_arch *arch,
				  const struct fathom_step_memory *m, uint64_t pc);

/*
 * If r->pc is the code by which signal handlers return (rt_sigreturn or sigreturn, recognized by
 * its bytes), makes @r the registers that were interrupted and returns true in *@ret_is. The
 * caller's pc is exact. Layouts: Linux, arch/x86/include/uapi/asm/sigcontext.h and arch/arm64
 * likewise.
 */
enum fathom_stop fathom_step_signal(const struct fathom_unwind_arch *arch,
				    const struct fathom_step_memory *m, struct fathom_registers *r,
				    bool *ret_is);

/*
 * Finds the siginfo_t that the kernel has saved for the handler which returns to r->pc, with r->sp.
 * Returns false if r->pc is not such code, or its signal frames have none. The bytes are undefined
 * if the handler was installed without SA_SIGINFO.
 */
bool fathom_step_siginfo(const struct fathom_unwind_arch *arch, const struct fathom_step_memory *m,
			 const struct fathom_registers *r, uint64_t *ret);

/*
 * If r->pc is one of the last instructions of gcc's __builtin_eh_return(), by which an exception
 * leaves several frames at once, makes @r the registers after them and returns true in *@ret_is:
 * call frame information does not describe them. The caller's pc is exact: no call returns there.
 */
enum fathom_stop fathom_step_eh_return(const struct fathom_unwind_arch *arch,
				       const struct fathom_step_memory *m,
				       struct fathom_registers *r, bool *ret_is);

/*
 * Undoes a call to an address that is no code, such as 0: the caller is where the return address,
 * on top of the stack or in the link register, leads. FATHOM_STOP_NO_RULE if that is 0, too.
 */
enum fathom_stop fathom_step_bad_call(const struct fathom_unwind_arch *arch,
				      const struct fathom_step_memory *m,
				      struct fathom_registers *r);

/*
 * Steps by the frame pointer: it must be aligned, not below sp, and hold a frame record of a saved
 * frame pointer, further out or 0, and a return address; a record may be all 0.
 * FATHOM_STOP_NO_RULE if a check fails. The caller checks the return address. On aarch64 the
 * caller's sp is unknown afterwards.
 */
enum fathom_stop fathom_step_frame_pointer(const struct fathom_unwind_arch *arch,
					   const struct fathom_step_memory *m,
					   struct fathom_registers *r);

/* Returns whether the instruction before @pc, a return address, is a call; false if unreadable. */
bool fathom_step_is_behind_call(const struct fathom_unwind_arch *arch,
				const struct fathom_step_memory *m, uint64_t pc);

/* Finds where the direct call before @pc leads; false if there is none. */
bool fathom_step_call_target(const struct fathom_unwind_arch *arch,
			     const struct fathom_step_memory *m, uint64_t pc, uint64_t *ret);

#endif
