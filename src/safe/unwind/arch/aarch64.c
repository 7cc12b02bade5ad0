/* SPDX-License-Identifier: MIT */
/*
 * Numbers: DWARF for the Arm 64-bit Architecture, 4.1. Frames of signals: Linux, struct rt_sigframe
 * and struct sigcontext of arch/arm64. Code is little-endian whatever data are.
 */
#include <elf.h>

#include "safe/unwind/registers.h"

static const struct fathom_signal_return signal_returns[] = {
	/*
	 * mov x8, #139; svc #0. At sp: 128 bytes of siginfo and the ucontext, whose sigcontext
	 * begins 176 bytes into it with the address of a fault.
	 */
	{ .size = 8,
	  .code = { 0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4 },
	  .n_places = 2,
	  .has_siginfo = true,
	  .places = { { 0, 128 + 176 + 8 }, { 4, 128 + 176 + 8 } } },
};

/* Returns instruction @i of @code, from 0. */
static uint32_t instruction(const uint8_t *code, uint64_t i)
{
	return load_u32(code + 4 * i, __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__);
}

/* bl, blr, and those that authenticate the address: blraa, blrab, blraaz, blrabz. */
static bool ends_with_call(const uint8_t *code, size_t size)
{
	uint32_t op;

	if (size < 4)
		return false;
	op = instruction(code + size - 4, 0);
	return (op & 0xfc000000) == 0x94000000 || (op & 0xfffffc1f) == 0xd63f0000 ||
	       (op & 0xfefff800) == 0xd63f0800;
}

/* bl */
static bool ends_with_direct_call(const uint8_t *code, size_t size, uint64_t *ret)
{
	uint32_t op;

	if (size < 4)
		return false;
	op = instruction(code + size - 4, 0);
	/* 26 bits, signed, of words, from the call on. */
	*ret = (uint64_t)((int64_t)((uint64_t)op << 38) >> 36) - 4;
	return (op & 0xfc000000) == 0x94000000;
}

/* b to elsewhere, or br; conditional branches lead to the same function. */
static bool may_jump_out(struct fathom_bytes code)
{
	for (uint64_t i = 0; i < code.size / 4; i++) {
		const uint32_t op = instruction(code.data, i);
		const int64_t target = (int64_t)i + ((int64_t)((uint64_t)op << 38) >> 38);

		if ((op & 0xfffffc1f) == 0xd61f0000 ||
		    ((op & 0xfc000000) == 0x14000000 &&
		     (target < 0 || target >= (int64_t)(code.size / 4))))
			return true;
	}
	return false;
}

/* bti or nop, or none; mov x0,x19; cbnz x0,__setcontext; b exit */
static bool is_context_end(struct fathom_bytes code)
{
	const uint64_t i =
		code.size >= 16 && (instruction(code.data, 0) & 0xfffff01f) == 0xd503201f;

	return code.size >= 16 && instruction(code.data, i) == 0xaa1303e0 &&
	       (instruction(code.data, i + 1) & 0xff00001f) == 0xb5000000 &&
	       (instruction(code.data, i + 2) & 0xfc000000) == 0x14000000;
}

/* mov constants and registers, and hints, to svc #0 (include/uapi/asm-generic/unistd.h). */
static bool is_thread_end(struct fathom_bytes code)
{
	uint64_t number = 0;

	for (uint64_t i = 0; i < code.size / 4; i++) {
		const uint32_t c = instruction(code.data, i);

		if (c == 0xd4000001)                         /* svc #0 */
			return number == 93 || number == 94; /* exit, exit_group */
		if ((c & 0x7fe0001f) == 0x52800008)          /* mov w8 or x8,constant */
			number = c >> 5 & 0xffff;
		else if ((c & 0x7fe0ffe0) == 0x2a0003e0) /* mov between registers */
			number = (c & 31) == 8 ? 0 : number;
		else if ((c & 0x7fe00000) != 0x52800000 && (c & 0xfffff01f) != 0xd503201f)
			return false;
	}
	return false;
}

/* mov x29,#0 */
static bool clears_fp(struct fathom_bytes code)
{
	for (uint64_t i = 0; i < code.size / 4; i++)
		if ((instruction(code.data, i) & 0x7fffffff) == 0x5280001d)
			return true;
	return false;
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
	.ends_with_direct_call = ends_with_direct_call,
	.may_jump_out = may_jump_out,
	.is_context_end = is_context_end,
	.is_thread_end = is_thread_end,
	.clears_fp = clears_fp,
};
