/* SPDX-License-Identifier: MIT */
/* Decodes x86 with Zydis, which is opened on first use and stays open. */
#include "host/disasm/x86.h"

#include <stdio.h>
#include <stdlib.h>

#include "host/base/library.h"
#include "host/file/file.h"

#define FIRST_GPR64 ZYDIS_REGISTER_RAX

struct x86 {
	struct fathom_code_decoder decoder;
	struct fathom_zydis zydis;
	ZydisDecoder d;
	ZydisMachineMode mode;
	bool intel;
	struct fathom_x86_insn insn;
	uint8_t gpr[ZYDIS_REGISTER_MAX_VALUE + 1]; /* number of the whole register */
};

/* Names the library of the version of this build's headers: structures differ between versions. */
static void format_soname(char *name, size_t cap)
{
	(void)snprintf(name, cap, "libZydis.so.%u.%u", (unsigned)ZYDIS_VERSION_MAJOR(ZYDIS_VERSION),
		       (unsigned)ZYDIS_VERSION_MINOR(ZYDIS_VERSION));
}

static const struct fathom_library_symbol symbols[] = {
	{ "ZydisGetVersion", offsetof(struct fathom_zydis, version) },
	{ "ZydisDecoderInit", offsetof(struct fathom_zydis, decoder_init) },
	{ "ZydisDecoderDecodeInstruction", offsetof(struct fathom_zydis, decode_instruction) },
	{ "ZydisDecoderDecodeOperands", offsetof(struct fathom_zydis, decode_operands) },
	{ "ZydisMnemonicGetString", offsetof(struct fathom_zydis, mnemonic) },
	{ "ZydisRegisterGetString", offsetof(struct fathom_zydis, register_name) },
	{ "ZydisRegisterGetLargestEnclosing", offsetof(struct fathom_zydis, largest) },
	{ "ZydisRegisterGetId", offsetof(struct fathom_zydis, register_id) },
};

static bool open_library(struct fathom_zydis *z)
{
	char name[32];

	format_soname(name, sizeof name);
	return fathom_library_open(name, symbols, sizeof symbols / sizeof *symbols, z);
}

uint64_t fathom_x86_branch_target(const struct fathom_x86_insn *x, const ZydisDecodedOperand *o)
{
	const uint64_t to = x->address + x->i.length + o->imm.value.u;

	if (x->i.operand_width == 16)
		return to & 0xffff;
	return x->is64 ? to : (uint32_t)to;
}

static uint8_t flow_of(const ZydisDecodedInstruction *i)
{
	switch (i->meta.category) {
	case ZYDIS_CATEGORY_CALL:
		return FATHOM_FLOW_CALL;
	case ZYDIS_CATEGORY_COND_BR:
		return FATHOM_FLOW_BRANCH;
	case ZYDIS_CATEGORY_UNCOND_BR:
		return FATHOM_FLOW_JUMP;
	case ZYDIS_CATEGORY_RET:
		return FATHOM_FLOW_RETURN;
	default:
		break;
	}
	switch (i->mnemonic) {
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
		return FATHOM_FLOW_STOP;
	default:
		return FATHOM_FLOW_NEXT;
	}
}

static bool is_indirect(const struct fathom_code *c)
{
	return c->flow == FATHOM_FLOW_CALL || c->flow == FATHOM_FLOW_JUMP;
}

/* Finds the address of a memory operand that the instruction states itself. */
static bool states_address(const struct x86 *x, const ZydisDecodedOperand *o, uint64_t *ret)
{
	const struct fathom_x86_insn *n = &x->insn;
	const bool rip = o->mem.base == ZYDIS_REGISTER_RIP || o->mem.base == ZYDIS_REGISTER_EIP;

	if (o->mem.index != ZYDIS_REGISTER_NONE || o->mem.segment == ZYDIS_REGISTER_FS ||
	    o->mem.segment == ZYDIS_REGISTER_GS || (!rip && o->mem.base != ZYDIS_REGISTER_NONE))
		return false;
	*ret = (uint64_t)o->mem.disp.value + (rip ? n->address + n->i.length : 0);
	if (!n->is64 || n->i.address_width == 32)
		*ret = (uint32_t)*ret;
	return n->i.address_width != 16;
}

/* Finds what a memory operand refers to. */
static void refer_memory(const struct x86 *x, const ZydisDecodedOperand *o, struct fathom_code *c)
{
	uint64_t address;

	if (!states_address(x, o, &address))
		return;
	c->value = address;
	c->kind = o->mem.type == ZYDIS_MEMOP_TYPE_MEM ? FATHOM_REFERENCE_SLOT
						      : FATHOM_REFERENCE_ADDRESS;
	c->relative = o->mem.base != ZYDIS_REGISTER_NONE;
	c->slot_size = o->size / 8 < 255 ? (uint8_t)(o->size / 8) : 255;
}

/*
 * Finds what a constant refers to. Constants that are no addresses are sorted out when they are
 * named; masks and factors never are addresses.
 */
static void refer_constant(const struct x86 *x, const ZydisDecodedOperand *o, struct fathom_code *c)
{
	const ZydisDecodedInstruction *i = &x->insn.i;
	uint64_t value = o->imm.value.u;

	switch (i->mnemonic) {
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_CMP:
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_PUSH:
		break;
	default:
		return;
	}
	if (i->operand_width < 32 || i->raw.imm[0].size < 32)
		return;
	if (i->operand_width == 32)
		value = (uint32_t)value;
	if (c->kind) {
		c->constant = value;
		c->has_constant = true;
	} else {
		c->value = value;
		c->kind = FATHOM_REFERENCE_VALUE;
	}
}

static uint8_t gpr_of(const struct x86 *x, const ZydisDecodedOperand *o)
{
	return o->type == ZYDIS_OPERAND_TYPE_REGISTER ? x->gpr[o->reg.value] : FATHOM_NO_REGISTER;
}

/* Returns whether the kernel or a hypervisor answers in registers that are no operands. */
static bool leaves_program(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_INT:
	case ZYDIS_MNEMONIC_SYSCALL:
	case ZYDIS_MNEMONIC_SYSENTER:
	case ZYDIS_MNEMONIC_VMCALL:
	case ZYDIS_MNEMONIC_VMMCALL:
		return true;
	default:
		return false;
	}
}

/* Finds what the instruction does to registers. */
static void note_effect(const struct x86 *x, struct fathom_code *c)
{
	const struct fathom_x86_insn *n = &x->insn;
	const bool whole = n->o[0].size == n->i.address_width || n->o[0].size == 32;

	for (unsigned k = 0; k < n->i.operand_count; k++) {
		const uint8_t reg = gpr_of(x, &n->o[k]);

		if (reg != FATHOM_NO_REGISTER &&
		    (n->o[k].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			c->writes |= 1u << reg;
	}
	if (leaves_program(n->i.mnemonic))
		c->writes |= x->decoder.clobbered;
	c->reg = gpr_of(x, &n->o[0]);
	if (is_indirect(c) || c->reg == FATHOM_NO_REGISTER || !whole)
		return;
	if (n->i.mnemonic == ZYDIS_MNEMONIC_MOV && c->kind == FATHOM_REFERENCE_VALUE)
		c->effect = FATHOM_EFFECT_SET;
	else if (n->i.mnemonic == ZYDIS_MNEMONIC_LEA && c->kind == FATHOM_REFERENCE_ADDRESS)
		c->effect = FATHOM_EFFECT_SET;
	else if (n->i.mnemonic == ZYDIS_MNEMONIC_MOV && c->kind == FATHOM_REFERENCE_SLOT &&
		 c->slot_size == x->decoder.word)
		c->effect = FATHOM_EFFECT_LOAD;
}

static void analyse(const struct x86 *x, struct fathom_code *c)
{
	const struct fathom_x86_insn *n = &x->insn;

	c->flow = flow_of(&n->i);
	c->pointer = true;
	c->computes = n->i.mnemonic == ZYDIS_MNEMONIC_ADD || n->i.mnemonic == ZYDIS_MNEMONIC_SUB;
	for (unsigned k = 0; k < n->i.operand_count_visible; k++) {
		const ZydisDecodedOperand *o = &n->o[k];

		if (o->type == ZYDIS_OPERAND_TYPE_MEMORY) {
			c->computes |= o->mem.index != ZYDIS_REGISTER_NONE;
			refer_memory(x, o, c);
		} else if (o->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && o->imm.is_relative) {
			c->kind = FATHOM_REFERENCE_BRANCH;
			c->value = fathom_x86_branch_target(n, o);
			c->relative = true;
		} else if (o->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
			refer_constant(x, o, c);
		} else if (gpr_of(x, o) == FATHOM_NO_REGISTER) {
			c->pointer = false;
		}
	}
	note_effect(x, c);
}

/* Decodes @bytes into x->insn; false if they are no instruction. */
static bool decode_insn(struct x86 *x, struct fathom_bytes bytes, uint64_t address)
{
	struct fathom_x86_insn *n = &x->insn;
	ZydisDecoderContext context;

	n->bytes = bytes.data;
	n->address = address;
	return ZYAN_SUCCESS(x->zydis.decode_instruction(&x->d, &context, bytes.data,
							(ZyanUSize)bytes.size, &n->i)) &&
	       ZYAN_SUCCESS(
		       x->zydis.decode_operands(&x->d, &context, &n->i, n->o, n->i.operand_count));
}

static void decode(struct fathom_code_decoder *d, struct fathom_bytes bytes, uint64_t address,
		   struct fathom_code *ret, struct fathom_text *text)
{
	struct x86 *x = (struct x86 *)d;
	struct fathom_x86_insn *n = &x->insn;
	struct fathom_x86_place place;

	*ret = (struct fathom_code){ .address = address,
				     .reg = FATHOM_NO_REGISTER,
				     .base = FATHOM_NO_REGISTER };
	if (!decode_insn(x, bytes, address)) {
		ret->size = 1;
		ret->bad = true;
		ret->flow = FATHOM_FLOW_STOP;
		if (text)
			fathom_text_cstr(text, "(bad)");
		return;
	}
	ret->size = n->i.length;
	ret->padding = n->i.mnemonic == ZYDIS_MNEMONIC_NOP || n->i.mnemonic == ZYDIS_MNEMONIC_INT3;
	analyse(x, ret);
	if (!text)
		return;
	place = x->intel ? fathom_x86_print_intel(n, text) : fathom_x86_print_att(n, text);
	ret->operand = place.at;
	ret->operand_size = place.size;
}

static void decode_stack(struct fathom_code_decoder *d, struct fathom_bytes bytes, uint64_t address,
			 struct fathom_stack_code *ret)
{
	struct x86 *x = (struct x86 *)d;

	if (decode_insn(x, bytes, address)) {
		fathom_x86_stack(&x->insn, x->gpr, ret);
		ret->flow = flow_of(&x->insn.i);
		if (leaves_program(x->insn.i.mnemonic))
			ret->writes |= x->decoder.clobbered;
	} else {
		*ret = (struct fathom_stack_code){ .size = 1,
						   .flow = FATHOM_FLOW_STOP,
						   .bad = true };
	}
}

/* Takes memory operand @o of an instruction of 64-bit code; false if its address is not known. */
static bool take_access(const struct x86 *x, const ZydisDecodedOperand *o,
			struct fathom_code_access *ret)
{
	const struct fathom_x86_insn *n = &x->insn;
	const bool is_relative = o->mem.base == ZYDIS_REGISTER_RIP;
	const bool has_base = !is_relative && o->mem.base != ZYDIS_REGISTER_NONE;
	const bool has_index = o->mem.index != ZYDIS_REGISTER_NONE;
	/* Calls and PUSH write below the stack pointer; Zydis states where that is itself. */
	const bool is_pushed = o->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
			       o->mem.base == ZYDIS_REGISTER_RSP &&
			       !(o->actions & ZYDIS_OPERAND_ACTION_MASK_READ);

	*ret = (struct fathom_code_access){
		.displacement = (uint64_t)o->mem.disp.value +
				(is_relative ? n->address + n->i.length : 0) -
				(is_pushed ? o->size / 8U : 0),
		.size = o->size / 8,
		.base = has_base ? x->gpr[o->mem.base] : FATHOM_NO_REGISTER,
		.index = has_index ? x->gpr[o->mem.index] : FATHOM_NO_REGISTER,
		.scale = o->mem.scale,
		.reads = (o->actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0,
		.writes = (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0,
	};
	return o->mem.type == ZYDIS_MEMOP_TYPE_MEM && n->i.address_width == 64 &&
	       o->mem.segment != ZYDIS_REGISTER_FS && o->mem.segment != ZYDIS_REGISTER_GS &&
	       (!has_base || ret->base != FATHOM_NO_REGISTER) &&
	       (!has_index || ret->index != FATHOM_NO_REGISTER);
}

static unsigned decode_accesses(struct fathom_code_decoder *d, struct fathom_bytes bytes,
				uint64_t address,
				struct fathom_code_access ret[FATHOM_MAX_ACCESSES])
{
	struct x86 *x = (struct x86 *)d;
	unsigned n = 0;

	if (!x->insn.is64 || !decode_insn(x, bytes, address))
		return 0;
	for (unsigned k = 0; k < x->insn.i.operand_count; k++) {
		const ZydisDecodedOperand *o = &x->insn.o[k];

		if (o->type != ZYDIS_OPERAND_TYPE_MEMORY || o->mem.type == ZYDIS_MEMOP_TYPE_AGEN)
			continue;
		if (n == FATHOM_MAX_ACCESSES || !take_access(x, o, &ret[n]))
			return 0;
		n++;
	}
	return n;
}

static void close_decoder(struct fathom_code_decoder *d)
{
	free(d);
}

/* Sets the general register that each register is a part of. */
static void number_registers(struct x86 *x)
{
	const ZydisRegister first = x->insn.is64 ? ZYDIS_REGISTER_RAX : ZYDIS_REGISTER_EAX;
	const unsigned n = x->insn.is64 ? 16 : 8;

	for (unsigned r = 0; r <= ZYDIS_REGISTER_MAX_VALUE; r++) {
		const ZydisRegister whole = x->zydis.largest(x->mode, (ZydisRegister)r);

		x->gpr[r] = whole >= first && whole < first + n ? (uint8_t)(whole - first)
								: FATHOM_NO_REGISTER;
	}
}

/* rax, rcx, rdx, rsi, rdi, r8 to r11 (x86-64 psABI 3.2.1); on i386 eax, ecx, edx. */
#define CLOBBERED_64 0x0fc7u
#define CLOBBERED_32 0x0007u

fathom_err fathom_x86_open(bool is64, bool intel, struct fathom_code_decoder **ret,
			   struct fathom_errinfo *reterr)
{
	struct x86 *x = calloc(1, sizeof *x);
	char name[32];

	if (!x)
		return fathom_fail_memory(reterr);
	if (!open_library(&x->zydis) || (x->zydis.version() ^ ZYDIS_VERSION) >> 32 != 0) {
		free(x);
		format_soname(name, sizeof name);
		(void)fathom_fail_by(reterr, FATHOM_E_UNSUPPORTED, FATHOM_CAUSE_NOT_INSTALLED,
				     "x86 code is decoded by Zydis, which is not installed");
		fathom_errinfo_set_file(reterr, name);
		return FATHOM_E_UNSUPPORTED;
	}
	x->decoder = (struct fathom_code_decoder){ .decode = decode,
						   .decode_stack = decode_stack,
						   .decode_accesses = decode_accesses,
						   .close = close_decoder,
						   .comment = "#",
						   .clobbered = is64 ? CLOBBERED_64 : CLOBBERED_32,
						   .word = is64 ? 8 : 4 };
	x->mode = is64 ? ZYDIS_MACHINE_MODE_LONG_64 : ZYDIS_MACHINE_MODE_LEGACY_32;
	x->intel = intel;
	x->insn.zydis = &x->zydis;
	x->insn.is64 = is64;
	(void)x->zydis.decoder_init(&x->d, x->mode,
				    is64 ? ZYDIS_STACK_WIDTH_64 : ZYDIS_STACK_WIDTH_32);
	number_registers(x);
	*ret = &x->decoder;
	return FATHOM_OK;
}
