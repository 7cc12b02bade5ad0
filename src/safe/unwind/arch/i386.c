/* SPDX-License-Identifier: MIT */
/* Numbers: i386 psABI, table 2.14. Frames of signals: Linux, struct sigcontext_32. */
#include <elf.h>

#include "safe/unwind/arch/x86_call.h"
#include "safe/unwind/arch/x86_ends.h"

#define BIT(i) (UINT64_C(1) << (i))

/* Bytes of gs, fs, es and ds, which stand before the general registers. */
#define SEGMENTS 16

static const struct fathom_signal_return signal_returns[] = {
	/*
	 * rt_sigreturn: mov $173,%eax; int $0x80. At sp: number, two pointers, 128 bytes of
	 * siginfo, and the ucontext, whose registers begin 20 bytes into it.
	 */
	{ .size = 7,
	  .code = { 0xb8, 0xad, 0x00, 0x00, 0x00, 0xcd, 0x80 },
	  .n_places = 2,
	  .has_siginfo = true,
	  .siginfo = 12,
	  .places = { { 0, 160 + SEGMENTS }, { 5, 160 + SEGMENTS } } },
	/* sigreturn: pop %eax; mov $119,%eax; int $0x80. At sp: number, registers. */
	{ .size = 8,
	  .code = { 0x58, 0xb8, 0x77, 0x00, 0x00, 0x00, 0xcd, 0x80 },
	  .n_places = 3,
	  .places = { { 0, 4 + SEGMENTS }, { 1, SEGMENTS }, { 6, SEGMENTS } } },
};

const struct fathom_unwind_arch fathom_unwind_i386 = {
	.machine = EM_386,
	.word = 4,
	.n = 9,
	.pc = 8,
	.sp = 4,
	.fp = 5,
	.link = FATHOM_NO_REGISTER,
	.callee_saved = BIT(3) | BIT(5) | BIT(6) | BIT(7),
	.signal_returns = signal_returns,
	.n_signal_returns = sizeof signal_returns / sizeof *signal_returns,
	.n_signal_slots = 11,
	/* edi, esi, ebp, esp, ebx, edx, ecx, eax, number and error of a trap, eip */
	.signal_slots = { 7, 6, 5, 4, 3, 2, 1, 0, FATHOM_NO_REGISTER, FATHOM_NO_REGISTER, 8 },
	.code_alignment = 1,
	.max_call = FATHOM_MAX_CALL,
	.ends_with_call = fathom_x86_ends_with_call,
	.ends_with_direct_call = fathom_x86_ends_with_direct_call,
	.may_jump_out = fathom_x86_may_jump_out,
	.is_context_end = fathom_i386_is_context_end,
	.is_thread_end = fathom_i386_is_thread_end,
	.clears_fp = fathom_x86_clears_fp,
};
