/* SPDX-License-Identifier: MIT */
/* Calls, stubs and jumps of x86-64 and i386 (Intel SDM volume 2: CALL, JMP, ENDBR64). */
#include "host/code/x86_64/x86_instructions.h"
#include "host/disasm/code.h"
#include "host/stack/callee_machine.h"

static uint64_t wrap(const struct fathom_callee *c, uint64_t address)
{
	return c->arch->word == 8 ? address : (uint32_t)address;
}

/* Returns what the 32 bits at @bytes add to @from. */
static uint64_t relative(const struct fathom_callee *c, uint64_t from, const uint8_t *bytes)
{
	return wrap(c, from + (uint64_t)(int64_t)(int32_t)load_u32(bytes, c->memory->swap));
}

/* Reads the slot that the instruction before @next names by the 32 bits at @bytes. */
static bool read_slot(const struct fathom_callee *c, uint64_t next, const uint8_t *bytes,
		      uint64_t *ret)
{
	const uint64_t slot =
		c->arch->word == 8 ? relative(c, next, bytes) : load_u32(bytes, c->memory->swap);

	/* Slots are data of a module: in no copy of a stack. */
	return fathom_reader_uint(c->memory->code, slot, c->arch->word, c->memory->swap, ret);
}

static bool find_target(const struct fathom_callee *c, uint64_t pc, uint64_t *ret)
{
	uint8_t call[FATHOM_X86_BY_WORD_SIZE];

	if (fathom_step_call_target(c->arch, c->memory, pc, ret))
		return true;
	/* call *slot, from rip on or absolute */
	return fathom_callee_read_code(c, pc - sizeof call, call, sizeof call) &&
	       fathom_x86_is_call_by_word(call) && read_slot(c, pc, call + 2, ret);
}

static bool pass_stub(const struct fathom_callee *c, uint64_t *target, bool *ret_unknown)
{
	static const uint8_t landing[] = { 0xf3, 0x0f, 0x1e }; /* endbr64, endbr32 */
	uint8_t code[7];
	uint64_t at = *target;
	const uint8_t *jump = code;

	if (fathom_callee_read_code(c, at, code, 4) && memcmp(code, landing, sizeof landing) == 0)
		at += 4;
	if (!fathom_callee_read_code(c, at, code, sizeof code))
		return false;
	if (*jump == 0xf2) { /* bnd */
		jump++;
		at++;
	}
	if (jump[0] == FATHOM_X86_JUMP) {
		*target = relative(c, at + FATHOM_X86_BRANCH_SIZE, jump + 1);
		return true;
	}
	if (fathom_x86_is_jump_by_word(jump))
		*ret_unknown = !read_slot(c, at + FATHOM_X86_BY_WORD_SIZE, jump + 2, target);
	else if (jump[0] == FATHOM_X86_BY_WORD &&
		 jump[1] == 0xa3) /* from %ebx on, in code of i386 */
		*ret_unknown = true;
	else
		return false;
	return true;
}

static bool decode(const struct fathom_callee *c, struct fathom_bytes bytes, uint64_t avma,
		   struct fathom_stack_code *ret)
{
	const struct fathom_stack_code *code = fathom_follower_decode(c->follower, bytes, avma);

	if (code)
		*ret = *code;
	return code && !code->bad;
}

const struct fathom_callee_machine fathom_callee_x86 = { .find_target = find_target,
							 .pass_stub = pass_stub,
							 .decode = decode };
