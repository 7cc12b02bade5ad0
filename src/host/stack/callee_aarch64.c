/* SPDX-License-Identifier: MIT */
/* Calls, stubs and jumps of aarch64 (Arm ARM, C6.2: BL, B, BTI). */
#include "host/disasm/code.h"
#include "host/stack/callee_machine.h"
#include "host/stack/follow_aarch64.h"

/* Bytes of an instruction. */
#define OP 4

static bool find_target(const struct fathom_callee *c, uint64_t pc, uint64_t *ret)
{
	return fathom_step_call_target(c->arch, c->memory, pc, ret);
}

static bool pass_stub(const struct fathom_callee *c, uint64_t *target, bool *ret_unknown)
{
	static const uint8_t landing[] = { 0x5f, 0x24, 0x03, 0xd5 }; /* bti c */
	struct fathom_stack_code jump;
	uint64_t at = *target;
	uint64_t slot;
	uint8_t code[16];

	if (fathom_callee_read_code(c, at, code, OP) && memcmp(code, landing, sizeof landing) == 0)
		at += OP;
	if (!fathom_callee_read_code(c, at, code, OP))
		return false;
	fathom_aarch64_flow(code, at, &jump);
	if (jump.flow == FATHOM_FLOW_JUMP && jump.is_direct) {
		*target = jump.target;
		return true;
	}
	if (!fathom_callee_read_code(c, at, code, sizeof code) ||
	    !fathom_aarch64_slot(code, at, &slot))
		return false;
	*ret_unknown = !fathom_reader_uint(c->memory->code, slot, 8, c->memory->swap, target);
	return true;
}

static bool decode(const struct fathom_callee *c, struct fathom_bytes bytes, uint64_t avma,
		   struct fathom_stack_code *ret)
{
	(void)c;
	if (bytes.size < OP)
		return false;
	fathom_aarch64_flow(bytes.data, avma, ret);
	return true;
}

const struct fathom_callee_machine fathom_callee_aarch64 = { .find_target = find_target,
							     .pass_stub = pass_stub,
							     .decode = decode };
