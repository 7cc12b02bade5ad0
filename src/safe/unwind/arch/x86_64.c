/* SPDX-License-Identifier: MIT */
/* Numbers: x86-64 psABI, figure 3.36. Frames of signals: Linux, struct sigcontext_64. */
#include <elf.h>

#include "safe/unwind/arch/x86_call.h"
#include "safe/unwind/arch/x86_ends.h"

#define BIT(i) (UINT64_C(1) << (i))

/*
 * At the code, sp is at the ucontext; its general registers begin 40 bytes into it. It has 304
 * bytes, and the siginfo follows (struct rt_sigframe).
 */
#define SIGINFO 304

static const struct fathom_signal_return signal_returns[] = {
	/* mov $15,%rax; syscall */
	{ .size = 9,
	  .code = { 0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05 },
	  .n_places = 2,
	  .has_siginfo = true,
	  .siginfo = SIGINFO,
	  .places = { { 0, 40 }, { 7, 40 } } },
	/* mov $15,%eax; syscall */
	{ .size = 7,
	  .code = { 0xb8, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05 },
	  .n_places = 2,
	  .has_siginfo = true,
	  .siginfo = SIGINFO,
	  .places = { { 0, 40 }, { 5, 40 } } },
};

const struct fathom_unwind_arch fathom_unwind_x86_64 = {
	.machine = EM_X86_64,
	.word = 8,
	.n = 17,
	.pc = 16,
	.sp = 7,
	.fp = 6,
	.link = FATHOM_NO_REGISTER,
	.callee_saved = BIT(3) | BIT(6) | BIT(12) | BIT(13) | BIT(14) | BIT(15),
	.signal_returns = signal_returns,
	.n_signal_returns = sizeof signal_returns / sizeof *signal_returns,
	.n_signal_slots = 17,
	/* r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip */
	.signal_slots = { 8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7, 16 },
	.code_alignment = 1,
	.max_call = FATHOM_MAX_CALL,
	.ends_with_call = fathom_x86_ends_with_call,
	.ends_with_direct_call = fathom_x86_ends_with_direct_call,
	.may_jump_out = fathom_x86_may_jump_out,
	.is_context_end = fathom_x86_64_is_context_end,
	.is_thread_end = fathom_x86_64_is_thread_end,
	.clears_fp = fathom_x86_clears_fp,
};
