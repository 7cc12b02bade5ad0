/* SPDX-License-Identifier: MIT */
/*
 * aarch64 instructions: the few that make addresses are recognised by their encoding (Arm
 * Architecture Reference Manual, C4.1); Capstone writes the text of all.
 */
#include <stdlib.h>

#include "host/disasm/capstone.h"
#include "host/disasm/code.h"

struct aarch64 {
	struct fathom_code_decoder decoder;
	struct fathom_capstone *capstone;
};

#define SP_OR_ZR 31
#define LINK     30
#define NOP      0xd503201f

/* x0 to x18 and the link register (AAPCS64 6.1.1). */
#define CLOBBERED (UINT32_C(0x7ffff) | UINT32_C(1) << LINK)

static int64_t sign_extend(uint64_t value, unsigned bits)
{
	const uint64_t top = UINT64_C(1) << (bits - 1);

	return (int64_t)(((value & (2 * top - 1)) ^ top) - top);
}

/* Returns @size bits of @insn from bit @at on. */
static uint32_t field(uint32_t insn, unsigned at, unsigned size)
{
	return (insn >> at) & ((UINT32_C(1) << size) - 1);
}

static void branch(struct fathom_code *c, uint32_t insn, unsigned at, unsigned size, uint8_t flow)
{
	c->flow = flow;
	c->kind = FATHOM_REFERENCE_BRANCH;
	c->relative = true;
	c->value = c->address + 4 * (uint64_t)sign_extend(field(insn, at, size), size);
}

/* Decodes a branch; returns false if it is none. */
static bool decode_branch(struct fathom_code *c, uint32_t insn)
{
	if ((insn & 0xfc000000) == 0x14000000) /* b */
		branch(c, insn, 0, 26, FATHOM_FLOW_JUMP);
	else if ((insn & 0xfc000000) == 0x94000000) /* bl */
		branch(c, insn, 0, 26, FATHOM_FLOW_CALL);
	else if ((insn & 0xff000000) == 0x54000000) /* b.cond, bc.cond */
		branch(c, insn, 5, 19, FATHOM_FLOW_BRANCH);
	else if ((insn & 0x7e000000) == 0x34000000) /* cbz, cbnz */
		branch(c, insn, 5, 19, FATHOM_FLOW_BRANCH);
	else if ((insn & 0x7e000000) == 0x36000000) /* tbz, tbnz */
		branch(c, insn, 5, 14, FATHOM_FLOW_BRANCH);
	else
		return false;
	/* b.al always branches. */
	if (c->flow == FATHOM_FLOW_BRANCH && (insn & 0xff000000) == 0x54000000 &&
	    field(insn, 0, 4) >= 14)
		c->flow = FATHOM_FLOW_JUMP;
	return true;
}

/* Decodes br, blr, ret and those of them that authenticate their pointer. */
static bool decode_register_branch(struct fathom_code *c, uint32_t insn)
{
	const uint32_t opc = field(insn, 21, 4);

	if ((insn & 0xfe000000) != 0xd6000000)
		return false;
	c->flow = opc == 1 || opc == 9   ? FATHOM_FLOW_CALL
		  : opc == 0 || opc == 8 ? FATHOM_FLOW_JUMP
					 : FATHOM_FLOW_RETURN;
	if (opc < 2)
		c->reg = (uint8_t)field(insn, 5, 5);
	return true;
}

/* Decodes adr, adrp, add of a constant, movz, movn, movk. */
static bool decode_arithmetic(struct fathom_code *c, uint32_t insn)
{
	const uint64_t page = UINT64_C(0xfff);
	const uint32_t distance = field(insn, 5, 19) << 2 | field(insn, 29, 2);
	const unsigned shift = 16 * field(insn, 21, 2);
	const uint64_t half = field(insn, 5, 16);

	c->reg = (uint8_t)field(insn, 0, 5);
	c->effect = FATHOM_EFFECT_SET;
	if ((insn & 0x9f000000) == 0x10000000) { /* adr */
		c->value = c->address + (uint64_t)sign_extend(distance, 21);
		c->kind = FATHOM_REFERENCE_ADDRESS;
		c->relative = true;
	} else if ((insn & 0x9f000000) == 0x90000000) { /* adrp: only the page of an address */
		c->value = (c->address & ~page) + ((uint64_t)sign_extend(distance, 21) << 12);
		c->relative = true;
	} else if ((insn & 0xff800000) == 0x91000000) { /* add, 64 bits */
		c->effect = FATHOM_EFFECT_ADD;
		c->base = (uint8_t)field(insn, 5, 5);
		c->value = (uint64_t)field(insn, 10, 12) << (field(insn, 22, 1) ? 12 : 0);
	} else if ((insn & 0x7f800000) == 0x52800000) { /* movz */
		c->value = half << shift;
	} else if ((insn & 0x7f800000) == 0x12800000) { /* movn */
		c->value = ~(half << shift);
		if (!field(insn, 31, 1))
			c->value = (uint32_t)c->value;
	} else if ((insn & 0x7f800000) == 0x72800000) { /* movk */
		c->effect = FATHOM_EFFECT_INSERT;
		c->value = half;
		c->shift = (uint8_t)shift;
	} else {
		c->effect = FATHOM_EFFECT_NONE;
		c->reg = FATHOM_NO_REGISTER;
		return false;
	}
	return true;
}

/* Decodes loads and stores at a label, or at a constant distance from a register. */
static void decode_memory(struct fathom_code *c, uint32_t insn)
{
	const bool vector = field(insn, 26, 1);
	const uint32_t size = field(insn, 30, 2);
	const uint32_t opc = field(insn, 22, 2);
	const unsigned scale = vector && (opc & 2) ? 4 : size;
	const bool literal = (insn & 0x3b000000) == 0x18000000;
	const bool whole = !vector && (literal ? size == 1 : size == 3 && opc == 1);

	if (literal && size == 3 && !vector) /* prfm */
		return;
	if (!literal && (insn & 0x3b000000) != 0x39000000)
		return;
	c->kind = FATHOM_REFERENCE_SLOT;
	if (literal) {
		c->value = c->address + 4 * (uint64_t)sign_extend(field(insn, 5, 19), 19);
		c->relative = true;
		c->slot_size = (uint8_t)(vector ? 4u << size : size == 1 ? 8 : 4);
	} else {
		c->value = (uint64_t)field(insn, 10, 12) << scale;
		c->base = (uint8_t)field(insn, 5, 5);
		c->slot_size = (uint8_t)(1u << scale);
	}
	c->pointer = whole;
	if (whole) {
		c->effect = FATHOM_EFFECT_LOAD;
		c->reg = (uint8_t)field(insn, 0, 5);
	}
}

/* Returns whether @insn does not write the register in the lowest bits: stores and compares. */
static bool spares_register(uint32_t insn)
{
	return (insn & 0x3bc00000) == 0x38000000 || (insn & 0x3bc00000) == 0x39000000 ||
	       (insn & 0x3a400000) == 0x28000000;
}

/* Returns whether @insn is svc, hvc or smc: the answer comes in registers that are no operands. */
static bool leaves_program(uint32_t insn)
{
	return (insn & 0xffe0001c) == 0xd4000000 && (insn & 3);
}

/* Returns whether @insn adds registers, or loads at a distance that a register holds. */
static bool computes(uint32_t insn)
{
	return (insn & 0x1f000000) == 0x0b000000 || (insn & 0x3b200c00) == 0x38200800;
}

static void analyse(struct fathom_code *c, uint32_t insn)
{
	const bool branches = decode_branch(c, insn) || decode_register_branch(c, insn);

	if (!branches && ((insn & 0xffe0001f) == 0xd4200000 || insn >> 16 == 0)) /* brk, udf */
		c->flow = FATHOM_FLOW_STOP;
	if (!branches && !decode_arithmetic(c, insn))
		decode_memory(c, insn);
	if (c->flow == FATHOM_FLOW_NEXT && !spares_register(insn))
		c->writes |= UINT32_C(1) << field(insn, 0, 5);
	c->computes = computes(insn);
	if (leaves_program(insn))
		c->writes |= CLOBBERED;
	if (c->base == SP_OR_ZR || (c->effect && c->reg == SP_OR_ZR)) {
		c->effect = FATHOM_EFFECT_NONE;
		c->kind = c->relative ? c->kind : FATHOM_REFERENCE_NONE;
		c->base = FATHOM_NO_REGISTER;
	}
	c->writes &= ~(UINT32_C(1) << SP_OR_ZR);
}

/* Mnemonics are padded to this width. */
#define NAME_WIDTH 6

/* The address that a relative instruction states is its last operand. */
static void print(const struct fathom_capstone_insn *i, struct fathom_code *c,
		  struct fathom_text *t)
{
	const size_t start = t->len;
	const char *last = NULL;

	fathom_text_cstr(t, i->mnemonic);
	if (!*i->operands)
		return;
	while (t->len - start < NAME_WIDTH)
		fathom_text_char(t, ' ');
	fathom_text_char(t, ' ');
	for (const char *s = i->operands; *s; s++)
		if (*s == '#')
			last = s;
	if (!last || !c->relative) {
		fathom_text_cstr(t, i->operands);
		return;
	}
	for (const char *s = i->operands; s < last; s++)
		fathom_text_char(t, *s);
	c->operand = (uint16_t)t->len;
	fathom_text_hex(t, c->value);
	c->operand_size = (uint8_t)(t->len - c->operand);
}

/* Writes what Capstone does not know: udf, and instructions newer than the library. */
static void print_word(uint32_t insn, struct fathom_text *t)
{
	fathom_text_cstr(t, insn >> 16 ? ".inst  " : "udf    #");
	if (insn >> 16)
		fathom_text_hex(t, insn);
	else
		fathom_text_dec(t, insn);
}

static void decode(struct fathom_code_decoder *d, struct fathom_bytes bytes, uint64_t address,
		   struct fathom_code *ret, struct fathom_text *text)
{
	const struct aarch64 *a = (const struct aarch64 *)d;
	const bool swap = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__; /* code is little-endian */
	struct fathom_capstone_insn i;
	uint32_t insn;

	*ret = (struct fathom_code){
		.address = address, .size = 4, .reg = FATHOM_NO_REGISTER, .base = FATHOM_NO_REGISTER
	};
	if (bytes.size < 4) {
		ret->size = (uint8_t)bytes.size;
		ret->bad = true;
		ret->flow = FATHOM_FLOW_STOP;
		if (text)
			fathom_text_cstr(text, "(bad)");
		return;
	}
	insn = load_u32(bytes.data, swap);
	ret->padding = insn == NOP || !insn;
	if (!fathom_capstone_decode(a->capstone, bytes.data, address, &i)) {
		ret->bad = insn >> 16 != 0;
		/* It may be newer than the library: it may write any register. */
		ret->writes = ~UINT32_C(0);
		ret->flow = insn >> 16 ? FATHOM_FLOW_NEXT : FATHOM_FLOW_STOP;
		if (text)
			print_word(insn, text);
		return;
	}
	analyse(ret, insn);
	ret->writes |= i.writes & ~(UINT32_C(1) << SP_OR_ZR);
	if (text)
		print(&i, ret, text);
}

static void close_decoder(struct fathom_code_decoder *d)
{
	fathom_capstone_close(((struct aarch64 *)d)->capstone);
	free(d);
}

fathom_err fathom_aarch64_open(struct fathom_code_decoder **ret, struct fathom_errinfo *reterr)
{
	struct aarch64 *a = calloc(1, sizeof *a);
	fathom_err err;

	if (!a)
		return fathom_fail_memory(reterr);
	a->decoder = (struct fathom_code_decoder){ .decode = decode,
						   .close = close_decoder,
						   .comment = "//",
						   .clobbered = CLOBBERED,
						   .word = 8 };
	err = fathom_capstone_open(&a->capstone, reterr);
	if (err)
		free(a);
	else
		*ret = &a->decoder;
	return err;
}
