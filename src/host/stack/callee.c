/* SPDX-License-Identifier: MIT */
#include "host/stack/callee.h"

#include <elf.h>

#include "host/disasm/code.h"
#include "host/module/module.h"
#include "host/stack/callee_machine.h"

/* How far after its start a function without a symbol may be executed. */
#define LONGEST_FUNCTION 65536

/* Stubs that lead to each other: of a PLT, of a linker that links anew. */
#define MAX_STUBS 4

/* Functions that jump to each other at their ends. */
#define MAX_JUMPS 3

/* Instructions of such functions that are looked at for one pc. */
#define MAX_DECODED 512

bool fathom_callee_read_code(const struct fathom_callee *c, uint64_t avma, uint8_t *to, size_t size)
{
	return fathom_reader_read(c->memory->code, avma, to, size);
}

const struct fathom_callee_machine *fathom_callee_machine(uint32_t machine)
{
	return machine == EM_AARCH64 ? &fathom_callee_aarch64 : &fathom_callee_x86;
}

/* Finds the start of the symbol at @pc. */
static struct fathom_callee_start find_start(struct fathom_view *view, uint64_t pc)
{
	struct fathom_callee_start s = { .pc = pc, .start = FATHOM_NO_ADDRESS, .is_set = true };
	struct fathom_symbol_hit hit;
	struct fathom_place place;

	if (fathom_view_locate(view, pc, &place) || !place.holder ||
	    !fathom_symbols_scan(&place.holder->module->symbols, pc - place.bias, NULL, &hit) ||
	    !hit.size) /* it may end before */
		return s;
	s.start = hit.start + place.bias;
	s.is_part = hit.name.size && memchr(hit.name.data, '.', hit.name.size) != NULL;
	return s;
}

/* Multiplies @x by a fraction of the golden ratio: near addresses are spread. */
static size_t spread(uint64_t x)
{
	return (size_t)(x * UINT64_C(0x9e3779b97f4a7c15) >> 54);
}

/* Returns the start of the symbol that the callee is in. */
static const struct fathom_callee_start *start_of(const struct fathom_callee *c)
{
	struct fathom_callee_start *s =
		&c->cache->starts[spread(c->pc) & (FATHOM_CALLEE_STARTS - 1)];

	if (!s->is_set || s->pc != c->pc)
		*s = find_start(c->view, c->pc);
	return s;
}

/* Returns whether the function of the callee starts at @target. */
static bool starts_at(const struct fathom_callee *c, uint64_t target)
{
	const struct fathom_callee_start *s = start_of(c);

	if (s->start != FATHOM_NO_ADDRESS && !s->is_part)
		return target == s->start;
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

/* Returns the bytes of the instruction at l->at, and what is after them; none if unreadable. */
static struct fathom_bytes read_instruction(const struct fathom_callee *c, struct looked *l)
{
	uint64_t off = l->at - l->first;

	if (off >= l->size || l->size - off < FATHOM_MAX_INSN) {
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
		if (!c->machine->pass_stub(c, ret, &is_unknown) || is_unknown)
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

/* Returns whether the function at @start can end with a jump to the callee. */
static bool jumps_to(struct fathom_callee *c, uint64_t start, unsigned depth)
{
	struct looked l = { .start = start, .at = start, .furthest = start };

	while (c->decoded++ < MAX_DECODED) {
		struct fathom_stack_code code;
		enum jump jump;
		uint64_t to;

		if (!c->machine->decode(c, read_instruction(c, &l), l.at, &code))
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

	while (n++ < MAX_STUBS && c->machine->pass_stub(c, &target, &is_unknown))
		if (is_unknown)
			return true;
	return starts_at(c, target) || (depth < MAX_JUMPS && jumps_to(c, target, depth));
}

bool fathom_callee_is_called(struct fathom_callee *c, uint64_t return_address)
{
	struct fathom_callee_verdict *v;
	uint64_t target;

	if (!c->machine->find_target(c, return_address, &target))
		return true;
	v = &c->cache->verdicts[spread(c->pc ^ target << 1) & (FATHOM_CALLEE_VERDICTS - 1)];
	if (v->age != c->cache->age || v->pc != c->pc || v->target != target)
		*v = (struct fathom_callee_verdict){ .pc = c->pc,
						     .target = target,
						     .age = c->cache->age,
						     .is = leads_to(c, target, 0) };
	return v->is;
}
