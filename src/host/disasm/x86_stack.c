/* SPDX-License-Identifier: MIT */
/* Effects of x86 instructions on the stack: Intel SDM, volume 1, 6.2, and volume 2. */
#include "host/disasm/x86.h"

/* Numbers in encodings. */
enum { SP = 4, FP = 5 };

#define BIT(i) (UINT32_C(1) << (i))

/* An instruction whose effect is being found. */
struct finding {
	const struct fathom_x86_insn *x;
	const uint8_t *gpr; /* number of the whole register */
	unsigned word;      /* bytes of an address */
	struct fathom_stack_code *to;
};

static bool writes(const ZydisDecodedOperand *o)
{
	return o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
}

static bool is_memory(const ZydisDecodedOperand *o)
{
	return o->type == ZYDIS_OPERAND_TYPE_MEMORY;
}

/* Returns the number of @o if it is a whole general register. */
static uint8_t whole_register(const struct finding *f, const ZydisDecodedOperand *o)
{
	return o->type == ZYDIS_OPERAND_TYPE_REGISTER && o->size == f->word * 8
		       ? f->gpr[o->reg.value]
		       : FATHOM_NO_REGISTER;
}

/* Sets base and value to the address of memory operand @o if it is a register plus a constant. */
static void set_address(const struct finding *f, const ZydisDecodedOperand *o)
{
	f->to->base = FATHOM_NO_REGISTER;
	if (o->mem.index != ZYDIS_REGISTER_NONE || o->mem.segment == ZYDIS_REGISTER_FS ||
	    o->mem.segment == ZYDIS_REGISTER_GS || f->x->i.address_width != f->word * 8)
		return;
	f->to->base = f->gpr[o->mem.base];
	f->to->value = (uint64_t)o->mem.disp.value;
}

static void set_width(const struct finding *f, const ZydisDecodedOperand *o)
{
	f->to->width = o->size / 8;
}

/* Finds the memory operand that the instruction writes; NULL: none. */
static const ZydisDecodedOperand *find_written(const struct finding *f)
{
	for (unsigned k = 0; k < f->x->i.operand_count; k++)
		if (is_memory(&f->x->o[k]) && writes(&f->x->o[k]))
			return &f->x->o[k];
	return NULL;
}

/* Returns the hidden memory operand by which a push or pop reaches the stack; NULL: none. */
static const ZydisDecodedOperand *find_stack(const struct finding *f)
{
	for (unsigned k = 0; k < f->x->i.operand_count; k++) {
		const ZydisDecodedOperand *o = &f->x->o[k];

		if (is_memory(o) && o->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
		    f->gpr[o->mem.base] == SP)
			return o;
	}
	return NULL;
}

/* reg = base + value, of registers that are whole. */
static void copy(const struct finding *f, uint8_t reg, uint8_t base, uint64_t value)
{
	if (reg == FATHOM_NO_REGISTER || base == FATHOM_NO_REGISTER)
		return;
	f->to->move = FATHOM_MOVE_COPY;
	f->to->reg = reg;
	f->to->base = base;
	f->to->value = value;
	f->to->writes &= ~BIT(reg);
}

static void find_mov(const struct finding *f)
{
	const ZydisDecodedOperand *o = f->x->o;
	const uint8_t reg = whole_register(f, &o[0]);

	if (!is_memory(&o[1])) {
		copy(f, reg, whole_register(f, &o[1]), 0);
	} else if (reg != FATHOM_NO_REGISTER) {
		set_address(f, &o[1]);
		f->to->move = FATHOM_MOVE_LOAD;
		f->to->reg = reg;
		f->to->writes &= ~BIT(reg);
	}
}

static void find_lea(const struct finding *f)
{
	const uint8_t reg = whole_register(f, &f->x->o[0]);

	set_address(f, &f->x->o[1]);
	copy(f, reg, f->to->base, f->to->value);
}

/* add and sub of a constant */
static void find_sum(const struct finding *f)
{
	const ZydisDecodedOperand *o = f->x->o;
	const uint8_t reg = whole_register(f, &o[0]);

	if (o[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return;
	copy(f, reg, reg,
	     f->x->i.mnemonic == ZYDIS_MNEMONIC_ADD ? o[1].imm.value.u : 0 - o[1].imm.value.u);
}

/* pushes and pops of all kinds; the width that they take is that of their hidden operand */
static void find_push(const struct finding *f, bool is_pop)
{
	const ZydisDecodedOperand *stack = find_stack(f);
	const ZydisDecodedOperand *o = &f->x->o[0];
	const bool is_flags = o->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN;

	if (!stack)
		return;
	set_width(f, stack);
	f->to->move = is_pop ? FATHOM_MOVE_POP : FATHOM_MOVE_PUSH;
	f->to->writes &= ~BIT(SP);
	if (is_flags)
		return;
	if (f->to->width == f->word)
		f->to->reg = whole_register(f, o);
	if (!is_pop)
		return;
	if (is_memory(o))
		set_address(f, o);
	else if (f->gpr[o->reg.value] == SP)
		f->to->writes |= BIT(SP); /* what is popped is the stack pointer */
	else if (f->to->reg != FATHOM_NO_REGISTER)
		f->to->writes &= ~BIT(f->to->reg);
}

static void find_frame(const struct finding *f)
{
	const ZydisDecodedOperand *o = f->x->o;

	if (f->x->i.operand_width != f->word * 8)
		return;
	if (f->x->i.mnemonic == ZYDIS_MNEMONIC_LEAVE) {
		f->to->move = FATHOM_MOVE_LEAVE;
	} else if (!o[1].imm.value.u) { /* no display of outer frames */
		f->to->move = FATHOM_MOVE_ENTER;
		f->to->value = o[0].imm.value.u & 0xffff;
	} else {
		return;
	}
	f->to->writes &= ~(BIT(SP) | BIT(FP));
}

/* near calls and returns; others are none that could be followed */
static void find_call(const struct finding *f)
{
	const ZydisDecodedOperand *stack = find_stack(f);

	f->to->bad = f->x->i.meta.branch_type != ZYDIS_BRANCH_TYPE_NEAR || !stack ||
		     stack->size != f->word * 8;
	f->to->writes &= ~BIT(SP);
	if (f->x->i.mnemonic == ZYDIS_MNEMONIC_RET &&
	    f->x->o[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
		f->to->value = f->x->o[0].imm.value.u & 0xffff;
}

static void find_store(const struct finding *f)
{
	const ZydisDecodedOperand *o = find_written(f);

	if (!o || f->to->move != FATHOM_MOVE_OTHER)
		return;
	f->to->move = FATHOM_MOVE_STORE;
	set_address(f, o);
	set_width(f, o);
	if (f->x->i.mnemonic == ZYDIS_MNEMONIC_MOV)
		f->to->reg = whole_register(f, &f->x->o[1]);
}

static void find_move(const struct finding *f)
{
	switch (f->x->i.mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		find_mov(f);
		break;
	case ZYDIS_MNEMONIC_LEA:
		find_lea(f);
		break;
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		find_sum(f);
		break;
	case ZYDIS_MNEMONIC_PUSH:
	case ZYDIS_MNEMONIC_PUSHF:
	case ZYDIS_MNEMONIC_PUSHFD:
	case ZYDIS_MNEMONIC_PUSHFQ:
		find_push(f, false);
		break;
	case ZYDIS_MNEMONIC_POP:
	case ZYDIS_MNEMONIC_POPF:
	case ZYDIS_MNEMONIC_POPFD:
	case ZYDIS_MNEMONIC_POPFQ:
		find_push(f, true);
		break;
	case ZYDIS_MNEMONIC_LEAVE:
	case ZYDIS_MNEMONIC_ENTER:
		find_frame(f);
		break;
	case ZYDIS_MNEMONIC_CALL:
	case ZYDIS_MNEMONIC_RET:
		find_call(f);
		return;
	default:
		break;
	}
	find_store(f);
}

/* Returns whether memory operand @o is at an address that no register but the pc is part of. */
static bool is_fixed(const ZydisDecodedOperand *o)
{
	return o->mem.index == ZYDIS_REGISTER_NONE &&
	       (o->mem.base == ZYDIS_REGISTER_NONE || o->mem.base == ZYDIS_REGISTER_RIP);
}

void fathom_x86_stack(const struct fathom_x86_insn *x, const uint8_t *gpr,
		      struct fathom_stack_code *ret)
{
	const struct finding f = { .x = x, .gpr = gpr, .word = x->is64 ? 8 : 4, .to = ret };

	*ret = (struct fathom_stack_code){ .size = x->i.length,
					   .reg = FATHOM_NO_REGISTER,
					   .base = FATHOM_NO_REGISTER };
	for (unsigned k = 0; k < x->i.operand_count; k++) {
		const ZydisDecodedOperand *o = &x->o[k];

		if (o->type == ZYDIS_OPERAND_TYPE_REGISTER && writes(o) &&
		    gpr[o->reg.value] != FATHOM_NO_REGISTER)
			ret->writes |= BIT(gpr[o->reg.value]);
		if (o->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && o->imm.is_relative) {
			ret->is_direct = true;
			ret->target = fathom_x86_branch_target(x, o);
		}
		if (x->i.mnemonic == ZYDIS_MNEMONIC_JMP && o->type == ZYDIS_OPERAND_TYPE_MEMORY)
			ret->is_by_slot = is_fixed(o);
	}
	ret->is_landing =
		x->i.mnemonic == ZYDIS_MNEMONIC_ENDBR64 || x->i.mnemonic == ZYDIS_MNEMONIC_ENDBR32;
	find_move(&f);
	/* An interrupt other than a call of the kernel does not come back here. */
	if (x->i.mnemonic == ZYDIS_MNEMONIC_INT3 || x->i.mnemonic == ZYDIS_MNEMONIC_INT1 ||
	    x->i.mnemonic == ZYDIS_MNEMONIC_IRET || x->i.mnemonic == ZYDIS_MNEMONIC_IRETD ||
	    x->i.mnemonic == ZYDIS_MNEMONIC_IRETQ || x->i.mnemonic == ZYDIS_MNEMONIC_SYSENTER ||
	    x->i.mnemonic == ZYDIS_MNEMONIC_SYSRET || x->i.mnemonic == ZYDIS_MNEMONIC_SYSEXIT)
		ret->bad = true;
}
