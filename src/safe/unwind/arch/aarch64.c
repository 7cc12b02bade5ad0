/* SPDX-License-Identifier: MIT */
/*
 * Numbers: DWARF for the Arm 64-bit Architecture, 4.1. Frames of signals: Linux, struct rt_sigframe
 * and struct sigcontext of arch/arm64. Code is little-endian whatever data are.
 */
#include <elf.h>

#include "safe/base/bytes.h"
#include "safe/unwind/registers.h"

static const struct fathom_signal_return signal_returns[] = {
	/*
	 * mov x8, #139; svc #0. At sp: 128 bytes of siginfo and the ucontext, whose sigcontext
	 * begins 176 bytes into it with the address of a fault.
	 */
	{ .size = 8,
	  .code = { 0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4 },
	  .n_places = 2,
	  .places = { { 0, 128 + 176 + 8 }, { 4, 128 + 176 + 8 } } },
};

/* bl, blr, and those that authenticate the address: blraa, blrab, blraaz, blrabz. */
static bool ends_with_call(const uint8_t *code, size_t size)
{
	const bool swap = __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__;
	uint32_t op;

	if (size < 4)
		return false;
	op = load_u32(code + size - 4, swap);
	return (op & 0xfc000000) == 0x94000000 || (op & 0xfffffc1f) == 0xd63f0000 ||
	       (op & 0xfefff800) == 0xd63f0800;
}

const struct fathom_unwind_arch fathom_unwind_aarch64 = {
	.machine = EM_AARCH64,
	.word = 8,
	.n = 33,
	.pc = 32,
	.sp = 31,
	.fp = 29,
	.link = 30,
	.callee_saved = UINT64_C(0x3ff80000), /* x19 to x29 */
	.pac_mask = UINT64_C(0xff7f000000000000),
	.signal_returns = signal_returns,
	.n_signal_returns = sizeof signal_returns / sizeof *signal_returns,
	.n_signal_slots = 33,
	.signal_slots = { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16,
			  17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32 },
	.code_alignment = 4,
	.max_call = 4,
	.ends_with_call = ends_with_call,
};
