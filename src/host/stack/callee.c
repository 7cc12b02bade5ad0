/* SPDX-License-Identifier: MIT */
#include "host/stack/callee.h"

#include <elf.h>

#include "host/code/x86_64/x86_instructions.h"
#include "host/disasm/code.h"
#include "host/stack/follow_aarch64.h"
#include "host/module/module.h"

/* How far after its start a function without a symbol may be executed. */
#define LONGEST_FUNCTION 65536

/* Stubs that lead to each other: of a PLT, of a linker that links anew. */
#define MAX_STUBS 4

/* Functions that jump to each other at their ends. */
#define MAX_JUMPS 3

/* Instructions of such functions that are looked at for one pc. */
#define MAX_DECODED 512

static uint64_t wrap(const struct fathom_callee *c, uint64_t address)
{
	return c->arch->word == 8 ? address : (uint32_t)address;
}

static bool read_code(const struct fathom_callee *c, uint64_t avma, uint8_t *to, size_t size)
{
	return fathom_reader_read(c->memory->code, avma, to, size);
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

/* Finds where the call before @pc leads; false: only the registers knew. */
static bool find_target(const struct fathom_callee *c, uint64_t pc, uint64_t *ret)
{
	struct fathom_stack_code code;
	uint8_t call[6];

	if (c->arch->machine == EM_AARCH64) {
		if (!read_code(c, pc - 4, call, 4))
			return false;
		fathom_aarch64_flow(call, pc - 4, &code);
		*ret = code.target;
		return code.flow == FATHOM_FLOW_CALL && code.is_direct;
	}
	if (!read_code(c, pc - sizeof call, call, sizeof call))
		return false;
	if (call[1] == FATHOM_X86_CALL) {
		*ret = relative(c, pc, call + 2);
		return true;
	}
	/* call *slot, from rip on or absolute */
	return fathom_x86_is_call_by_word(call) && read_slot(c, pc, call + 2, ret);
}

/* As pass_stub(), of aarch64. */
static bool pass_aarch64_stub(const struct fathom_callee *c, uint64_t *target, bool *ret_unknown)
{
	static const uint8_t landing[] = { 0x5f, 0x24, 0x03, 0xd5 }; /* bti c */
	struct fathom_stack_code jump;
	uint64_t at = *target;
	uint64_t slot;
	uint8_t code[16];

	if (read_code(c, at, code, 4) && memcmp(code, landing, sizeof landing) == 0)
		at += 4;
	if (!read_code(c, at, code, 4))
		return false;
	fathom_aarch64_flow(code, at, &jump);
	if (jump.flow == FATHOM_FLOW_JUMP && jump.is_direct) {
		*target = jump.target;
		return true;
	}
	if (!read_code(c, at, code, sizeof code) || !fathom_aarch64_slot(code, at, &slot))
		return false;
	*ret_unknown = !fathom_reader_uint(c->memory->code, slot, 8, c->memory->swap, target);
	return true;
}

/* If @*target is a stub that jumps on, makes it what that jumps to. *@ret_unknown: nobody knows. */
static bool pass_stub(const struct fathom_callee *c, uint64_t *target, bool *ret_unknown)
{
	static const uint8_t landing[] = { 0xf3, 0x0f, 0x1e }; /* endbr64, endbr32 */
	uint8_t code[7];
	uint64_t at = *target;
	const uint8_t *jump = code;

	if (c->arch->machine == EM_AARCH64)
		return pass_aarch64_stub(c, target, ret_unknown);
	if (read_code(c, at, code, 4) && memcmp(code, landing, sizeof landing) == 0)
		at += 4;
	if (!read_code(c, at, code, sizeof code))
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

/* Finds the place of the callee and the start of its symbol. */
static void find_callee(struct fathom_callee *c)
{
	struct fathom_symbol_hit hit;

	c->is_found = true;
	c->start = FATHOM_NO_ADDRESS;
	if (fathom_view_locate(c->view, c->pc, &c->place) || !c->place.holder ||
	    !fathom_symbols_scan(&c->place.holder->module->symbols, c->pc - c->place.bias, NULL,
				 &hit) ||
	    !hit.size) /* it may end before */
		return;
	c->start = hit.start + c->place.bias;
	c->is_part = hit.name.size && memchr(hit.name.data, '.', hit.name.size) != NULL;
}

/* Returns whether the function of the callee starts at @target. */
static bool starts_at(struct fathom_callee *c, uint64_t target)
{
	if (!c->is_found)
		find_callee(c);
	if (c->start != FATHOM_NO_ADDRESS && !c->is_part)
		return target == c->start;
	return target <= c->pc && c->pc - target < LONGEST_FUNCTION;
}

/* Where a jump leads out of a function that is looked through. */
enum jump { JUMP_INSIDE, JUMP_OUT, JUMP_UNKNOWN };

/* A function that is looked through, instruction by instruction, as far as its branches lead. */
struct looked {
	uint64_t start;
	uint64_t at;
	uint64_t furthest; /* that a branch leads to */
	uint64_t first;    /* of the bytes that are read */
	size_t size;
	uint8_t bytes[256];
};

/* Bytes of the longest instruction (Intel 64 and IA-32 manual, volume 2, 2.3.11). */
#define LONGEST_INSTRUCTION 15

/* Returns the bytes of the instruction at l->at, and what is after them; none if unreadable. */
static struct fathom_bytes read_instruction(const struct fathom_callee *c, struct looked *l)
{
	uint64_t off = l->at - l->first;

	if (off >= l->size || l->size - off < LONGEST_INSTRUCTION) {
		l->first = l->at;
		l->size = c->memory->code->read(c->memory->code->data, l->at, l->bytes,
						sizeof l->bytes);
		off = 0;
	}
	return (struct fathom_bytes){ l->bytes + off, l->size - off };
}

/* Takes the instruction @code at l->at; *@ret is where it jumps to if it leads out. */
static enum jump take_instruction(const struct fathom_callee *c, struct looked *l,
				  const struct fathom_stack_code *code, uint64_t *ret)
{
	bool is_unknown = false;

	if (code->flow != FATHOM_FLOW_JUMP && code->flow != FATHOM_FLOW_BRANCH)
		return JUMP_INSIDE;
	*ret = code->target;
	if (!code->is_direct) {
		*ret = l->at;
		if (!pass_stub(c, ret, &is_unknown) || is_unknown)
			return JUMP_UNKNOWN;
		return JUMP_OUT;
	}
	if (code->target < l->start || code->target - l->start >= LONGEST_FUNCTION)
		return JUMP_OUT;
	/* The target of an unconditional jump past all other code is the next function. */
	if (code->flow == FATHOM_FLOW_JUMP && code->target > l->furthest &&
	    code->target > l->at + code->size)
		return JUMP_OUT;
	if (code->target > l->furthest)
		l->furthest = code->target;
	return JUMP_INSIDE;
}

static bool leads_to(struct fathom_callee *c, uint64_t target, unsigned depth);

/* Decodes the instruction at l->at for where it leads; false if it is none. */
static bool decode(const struct fathom_callee *c, struct looked *l, struct fathom_stack_code *ret)
{
	const struct fathom_bytes bytes = read_instruction(c, l);
	struct fathom_code_decoder *d;

	if (c->arch->machine == EM_AARCH64) {
		if (bytes.size < 4)
			return false;
		fathom_aarch64_flow(bytes.data, l->at, ret);
		return true;
	}
	d = fathom_follower_decoder(c->follower);
	if (!d || !bytes.size)
		return false;
	d->decode_stack(d, bytes, l->at, ret);
	return !ret->bad;
}

/* Returns whether the function at @start can end with a jump to the callee. */
static bool jumps_to(struct fathom_callee *c, uint64_t start, unsigned depth)
{
	struct looked l = { .start = start, .at = start, .furthest = start };

	while (c->decoded++ < MAX_DECODED) {
		struct fathom_stack_code code;
		enum jump jump;
		uint64_t to;

		if (!decode(c, &l, &code))
			return false;
		jump = take_instruction(c, &l, &code, &to);
		if (jump == JUMP_UNKNOWN || (jump == JUMP_OUT && leads_to(c, to, depth + 1)))
			return true;
		l.at += code.size;
		if ((code.flow == FATHOM_FLOW_JUMP || code.flow == FATHOM_FLOW_RETURN ||
		     code.flow == FATHOM_FLOW_STOP) &&
		    l.at > l.furthest)
			return false;
	}
	return false;
}

/* Returns whether what a call or jump to @target executes can come to the callee. */
static bool leads_to(struct fathom_callee *c, uint64_t target, unsigned depth)
{
	bool is_unknown = false;
	int n = 0;

	while (n++ < MAX_STUBS && pass_stub(c, &target, &is_unknown))
		if (is_unknown)
			return true;
	return starts_at(c, target) || (depth < MAX_JUMPS && jumps_to(c, target, depth));
}

bool fathom_callee_is_called(struct fathom_callee *c, uint64_t return_address)
{
	uint64_t target;

	return !find_target(c, return_address, &target) || leads_to(c, target, 0);
}
