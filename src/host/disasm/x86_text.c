/* SPDX-License-Identifier: MIT */
/*
 * x86 instructions as GNU's disassembler prints them (binutils, `objdump -d -M suffix` and `-M
 * intel`), but with 0x before addresses. tests/disasm lists the other differences, and counts them
 * over libc's text.
 */
#include "host/disasm/x86.h"

/* The printing of one instruction. */
struct printing {
	const struct fathom_x86_insn *x;
	struct fathom_text *t;
	struct fathom_x86_place place;
	const ZydisDecodedOperand *o[ZYDIS_MAX_OPERAND_COUNT]; /* those shown, in Intel's order */
	unsigned n;
	bool intel;
};

/* GNU's names where they differ from Intel's, in both syntaxes. */
static const char *const both_names[ZYDIS_MNEMONIC_MAX_VALUE + 1] = {
	[ZYDIS_MNEMONIC_JZ] = "je",
	[ZYDIS_MNEMONIC_JNZ] = "jne",
	[ZYDIS_MNEMONIC_JNB] = "jae",
	[ZYDIS_MNEMONIC_JNBE] = "ja",
	[ZYDIS_MNEMONIC_JNL] = "jge",
	[ZYDIS_MNEMONIC_JNLE] = "jg",
	[ZYDIS_MNEMONIC_SETZ] = "sete",
	[ZYDIS_MNEMONIC_SETNZ] = "setne",
	[ZYDIS_MNEMONIC_SETNB] = "setae",
	[ZYDIS_MNEMONIC_SETNBE] = "seta",
	[ZYDIS_MNEMONIC_SETNL] = "setge",
	[ZYDIS_MNEMONIC_SETNLE] = "setg",
	[ZYDIS_MNEMONIC_CMOVZ] = "cmove",
	[ZYDIS_MNEMONIC_CMOVNZ] = "cmovne",
	[ZYDIS_MNEMONIC_CMOVNB] = "cmovae",
	[ZYDIS_MNEMONIC_CMOVNBE] = "cmova",
	[ZYDIS_MNEMONIC_CMOVNL] = "cmovge",
	[ZYDIS_MNEMONIC_CMOVNLE] = "cmovg",
	[ZYDIS_MNEMONIC_FCMOVNBE] = "fcmovnbe",
	[ZYDIS_MNEMONIC_INT3] = "int3",
};

static const char *base_name(const struct fathom_x86_insn *x)
{
	const char *name = both_names[x->i.mnemonic];

	return name ? name : x->zydis->mnemonic(x->i.mnemonic);
}

/* Returns whether AT&T syntax adds the operand size to the name: integer instructions. */
static bool takes_suffix(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_ADC:
	case ZYDIS_MNEMONIC_ADCX:
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_ADOX:
	case ZYDIS_MNEMONIC_AND:
	case ZYDIS_MNEMONIC_ANDN:
	case ZYDIS_MNEMONIC_BEXTR:
	case ZYDIS_MNEMONIC_BLSI:
	case ZYDIS_MNEMONIC_BLSMSK:
	case ZYDIS_MNEMONIC_BLSR:
	case ZYDIS_MNEMONIC_BOUND:
	case ZYDIS_MNEMONIC_BSF:
	case ZYDIS_MNEMONIC_BSR:
	case ZYDIS_MNEMONIC_BT:
	case ZYDIS_MNEMONIC_BTC:
	case ZYDIS_MNEMONIC_BTR:
	case ZYDIS_MNEMONIC_BTS:
	case ZYDIS_MNEMONIC_BZHI:
	case ZYDIS_MNEMONIC_CALL:
	case ZYDIS_MNEMONIC_CMOVB:
	case ZYDIS_MNEMONIC_CMOVBE:
	case ZYDIS_MNEMONIC_CMOVL:
	case ZYDIS_MNEMONIC_CMOVLE:
	case ZYDIS_MNEMONIC_CMOVNB:
	case ZYDIS_MNEMONIC_CMOVNBE:
	case ZYDIS_MNEMONIC_CMOVNL:
	case ZYDIS_MNEMONIC_CMOVNLE:
	case ZYDIS_MNEMONIC_CMOVNO:
	case ZYDIS_MNEMONIC_CMOVNP:
	case ZYDIS_MNEMONIC_CMOVNS:
	case ZYDIS_MNEMONIC_CMOVNZ:
	case ZYDIS_MNEMONIC_CMOVO:
	case ZYDIS_MNEMONIC_CMOVP:
	case ZYDIS_MNEMONIC_CMOVS:
	case ZYDIS_MNEMONIC_CMOVZ:
	case ZYDIS_MNEMONIC_CMP:
	case ZYDIS_MNEMONIC_CMPSB:
	case ZYDIS_MNEMONIC_CMPSW:
	case ZYDIS_MNEMONIC_CMPXCHG:
	case ZYDIS_MNEMONIC_CRC32:
	case ZYDIS_MNEMONIC_DEC:
	case ZYDIS_MNEMONIC_DIV:
	case ZYDIS_MNEMONIC_ENTER:
	case ZYDIS_MNEMONIC_IDIV:
	case ZYDIS_MNEMONIC_IMUL:
	case ZYDIS_MNEMONIC_IN:
	case ZYDIS_MNEMONIC_INC:
	case ZYDIS_MNEMONIC_LEA:
	case ZYDIS_MNEMONIC_LEAVE:
	case ZYDIS_MNEMONIC_LOOP:
	case ZYDIS_MNEMONIC_LOOPE:
	case ZYDIS_MNEMONIC_LOOPNE:
	case ZYDIS_MNEMONIC_LZCNT:
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVBE:
	case ZYDIS_MNEMONIC_MUL:
	case ZYDIS_MNEMONIC_MULX:
	case ZYDIS_MNEMONIC_NEG:
	case ZYDIS_MNEMONIC_NOP:
	case ZYDIS_MNEMONIC_NOT:
	case ZYDIS_MNEMONIC_OR:
	case ZYDIS_MNEMONIC_OUT:
	case ZYDIS_MNEMONIC_PDEP:
	case ZYDIS_MNEMONIC_PEXT:
	case ZYDIS_MNEMONIC_POP:
	case ZYDIS_MNEMONIC_POPCNT:
	case ZYDIS_MNEMONIC_PUSH:
	case ZYDIS_MNEMONIC_RCL:
	case ZYDIS_MNEMONIC_RCR:
	case ZYDIS_MNEMONIC_RET:
	case ZYDIS_MNEMONIC_ROL:
	case ZYDIS_MNEMONIC_ROR:
	case ZYDIS_MNEMONIC_RORX:
	case ZYDIS_MNEMONIC_SALC:
	case ZYDIS_MNEMONIC_SAR:
	case ZYDIS_MNEMONIC_SARX:
	case ZYDIS_MNEMONIC_SBB:
	case ZYDIS_MNEMONIC_SHL:
	case ZYDIS_MNEMONIC_SHLD:
	case ZYDIS_MNEMONIC_SHLX:
	case ZYDIS_MNEMONIC_SHR:
	case ZYDIS_MNEMONIC_SHRD:
	case ZYDIS_MNEMONIC_SHRX:
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_TEST:
	case ZYDIS_MNEMONIC_TZCNT:
	case ZYDIS_MNEMONIC_XADD:
	case ZYDIS_MNEMONIC_XBEGIN:
	case ZYDIS_MNEMONIC_XCHG:
	case ZYDIS_MNEMONIC_XOR:
		return true;
	default:
		return false;
	}
}

/* GNU's names where only those in AT&T syntax differ from Intel's. */
static const char *const att_names[ZYDIS_MNEMONIC_MAX_VALUE + 1] = {
	[ZYDIS_MNEMONIC_CBW] = "cbtw",      [ZYDIS_MNEMONIC_CWDE] = "cwtl",
	[ZYDIS_MNEMONIC_CDQE] = "cltq",     [ZYDIS_MNEMONIC_CWD] = "cwtd",
	[ZYDIS_MNEMONIC_CDQ] = "cltd",      [ZYDIS_MNEMONIC_CQO] = "cqto",
	[ZYDIS_MNEMONIC_MOVSXD] = "movslq", [ZYDIS_MNEMONIC_MOVSD] = "movsd",
	[ZYDIS_MNEMONIC_STOSD] = "stosl",   [ZYDIS_MNEMONIC_LODSD] = "lodsl",
	[ZYDIS_MNEMONIC_SCASD] = "scasl",   [ZYDIS_MNEMONIC_CMPSD] = "cmpsl",
	[ZYDIS_MNEMONIC_INSD] = "insl",     [ZYDIS_MNEMONIC_OUTSD] = "outsl",
	[ZYDIS_MNEMONIC_IRET] = "iretw",    [ZYDIS_MNEMONIC_IRETD] = "iretl",
	[ZYDIS_MNEMONIC_PUSHFD] = "pushfl", [ZYDIS_MNEMONIC_POPFD] = "popfl",
	[ZYDIS_MNEMONIC_PUSHAD] = "pushal", [ZYDIS_MNEMONIC_POPAD] = "popal",
};

static bool is_string(const struct fathom_x86_insn *x)
{
	return x->i.meta.category == ZYDIS_CATEGORY_STRINGOP ||
	       x->i.meta.category == ZYDIS_CATEGORY_IOSTRINGOP;
}

static bool is_x87(const struct fathom_x86_insn *x)
{
	return x->i.meta.category == ZYDIS_CATEGORY_X87_ALU;
}

static char suffix_of(unsigned bits)
{
	return bits == 8 ? 'b' : bits == 16 ? 'w' : bits == 32 ? 'l' : bits == 64 ? 'q' : '\0';
}

static void put(const struct printing *p, const char *s)
{
	fathom_text_cstr(p->t, s);
}

static void put_suffix(const struct printing *p, unsigned bits)
{
	if (suffix_of(bits))
		fathom_text_char(p->t, suffix_of(bits));
}

/* Writes a signed number, as displacements are. */
static void put_signed(const struct printing *p, int64_t value)
{
	if (value < 0)
		fathom_text_char(p->t, '-');
	fathom_text_hex(p->t, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

static void put_register(const struct printing *p, ZydisRegister reg)
{
	const char *name = p->x->zydis->register_name(reg);

	if (!p->intel)
		fathom_text_char(p->t, '%');
	if (reg >= ZYDIS_REGISTER_ST0 && reg <= ZYDIS_REGISTER_ST7) {
		put(p, "st(");
		fathom_text_char(p->t, (char)('0' + (reg - ZYDIS_REGISTER_ST0)));
		fathom_text_char(p->t, ')');
	} else if (reg >= ZYDIS_REGISTER_DR0 && reg <= ZYDIS_REGISTER_DR15 && !p->intel) {
		put(p, "d");
		put(p, "b");
		fathom_text_dec(p->t, (uint64_t)(reg - ZYDIS_REGISTER_DR0));
	} else {
		put(p, name ? name : "?");
	}
}

/* Returns whether the SIB byte names no index, though the base does not need the byte. */
static bool has_null_index(const struct fathom_x86_insn *x, const ZydisDecodedOperand *o)
{
	return (x->i.attributes & ZYDIS_ATTRIB_HAS_SIB) && o->mem.index == ZYDIS_REGISTER_NONE &&
	       (x->i.raw.sib.scale ||
		(o->mem.base != ZYDIS_REGISTER_NONE && (x->i.raw.sib.base & 7) != 4));
}

static void put_null_index(const struct printing *p)
{
	put(p, p->intel ? "" : "%");
	put(p, p->x->i.address_width == 64 ? "riz" : "eiz");
}

static bool names_segment(const struct fathom_x86_insn *x, const ZydisDecodedOperand *o)
{
	return o->mem.segment == ZYDIS_REGISTER_FS || o->mem.segment == ZYDIS_REGISTER_GS ||
	       is_string(x) || (x->i.attributes & ZYDIS_ATTRIB_HAS_SEGMENT);
}

static unsigned displacement_bits(const struct fathom_x86_insn *x)
{
	return x->i.raw.disp.size;
}

/* Writes an address without registers, as wide as addresses are. */
static void put_absolute(const struct printing *p, int64_t value)
{
	fathom_text_hex(p->t, p->x->i.address_width == 64   ? (uint64_t)value
			      : p->x->i.address_width == 32 ? (uint32_t)value
							    : (uint16_t)value);
}

static void put_memory_att(const struct printing *p, const ZydisDecodedOperand *o)
{
	const struct fathom_x86_insn *x = p->x;
	const bool null_index = has_null_index(x, o);
	const bool based = o->mem.base != ZYDIS_REGISTER_NONE;
	const bool indexed = o->mem.index != ZYDIS_REGISTER_NONE || null_index;

	if (names_segment(x, o)) {
		put_register(p, o->mem.segment);
		put(p, ":");
	}
	if (!based && !indexed) {
		put_absolute(p, o->mem.disp.value);
		return;
	}
	if (!is_string(x) && displacement_bits(x))
		put_signed(p, o->mem.disp.value);
	put(p, "(");
	if (based)
		put_register(p, o->mem.base);
	if (indexed) {
		put(p, ",");
		if (null_index)
			put_null_index(p);
		else
			put_register(p, o->mem.index);
		if (x->i.address_width != 16) {
			put(p, ",");
			fathom_text_dec(p->t, null_index ? 1u << x->i.raw.sib.scale : o->mem.scale);
		}
	}
	put(p, ")");
}

static const char *size_word(unsigned bits)
{
	switch (bits) {
	case 8:
		return "BYTE PTR ";
	case 16:
		return "WORD PTR ";
	case 32:
		return "DWORD PTR ";
	case 48:
		return "FWORD PTR ";
	case 64:
		return "QWORD PTR ";
	case 80:
		return "TBYTE PTR ";
	case 128:
		return "XMMWORD PTR ";
	case 256:
		return "YMMWORD PTR ";
	case 512:
		return "ZMMWORD PTR ";
	default:
		return "";
	}
}

static bool has_sized_memory(const struct fathom_x86_insn *x, const ZydisDecodedOperand *o)
{
	if (o->mem.type == ZYDIS_MEMOP_TYPE_AGEN && x->i.mnemonic != ZYDIS_MNEMONIC_NOP)
		return false;
	return true;
}

static void put_memory_intel(const struct printing *p, const ZydisDecodedOperand *o)
{
	const struct fathom_x86_insn *x = p->x;
	const bool null_index = has_null_index(x, o);
	const bool based = o->mem.base != ZYDIS_REGISTER_NONE;
	const bool indexed = o->mem.index != ZYDIS_REGISTER_NONE || null_index;

	if (has_sized_memory(x, o))
		put(p, size_word(x->i.avx.broadcast.mode ? o->element_size : o->size));
	if (names_segment(x, o) || (!based && !indexed)) {
		put_register(p, o->mem.segment);
		put(p, ":");
	}
	if (!based && !indexed) {
		put_absolute(p, o->mem.disp.value);
		return;
	}
	put(p, "[");
	if (based)
		put_register(p, o->mem.base);
	if (indexed) {
		put(p, based ? "+" : "");
		if (null_index)
			put_null_index(p);
		else
			put_register(p, o->mem.index);
		if (x->i.address_width != 16) {
			put(p, "*");
			fathom_text_dec(p->t, null_index ? 1u << x->i.raw.sib.scale : o->mem.scale);
		}
	}
	if (!is_string(x) && displacement_bits(x)) {
		put(p, o->mem.disp.value < 0 ? "" : "+");
		put_signed(p, o->mem.disp.value);
	}
	put(p, "]");
}

/* Returns the bits of a constant that are shown. */
static uint64_t shown_constant(const struct fathom_x86_insn *x, const ZydisDecodedOperand *o)
{
	const unsigned width = !o->imm.is_signed    ? 64
			       : x->i.operand_width ? x->i.operand_width
						    : 64;

	return width >= 64 ? o->imm.value.u : o->imm.value.u & ((UINT64_C(1) << width) - 1);
}

/* Returns whether the opcode itself says to shift by one, which only Intel's syntax shows. */
static bool is_shift_by_one(const struct fathom_x86_insn *x)
{
	return x->i.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
	       (x->i.opcode == 0xd0 || x->i.opcode == 0xd1);
}

static void put_constant(const struct printing *p, const ZydisDecodedOperand *o)
{
	if (p->intel && is_shift_by_one(p->x)) {
		put(p, "1");
		return;
	}
	put(p, p->intel ? "" : "$");
	fathom_text_hex(p->t, shown_constant(p->x, o));
}

static void put_relative(struct printing *p, const ZydisDecodedOperand *o)
{
	p->place.at = (uint16_t)p->t->len;
	fathom_text_hex(p->t, fathom_x86_branch_target(p->x, o));
	p->place.size = (uint8_t)(p->t->len - p->place.at);
}

/* Returns whether 16 bits go to a segment register; their operand is named as wide as others. */
static bool loads_segment(const struct fathom_x86_insn *x)
{
	return x->i.mnemonic == ZYDIS_MNEMONIC_MOV && x->i.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
	       x->i.opcode == 0x8e && x->i.raw.modrm.mod == 3;
}

/* Returns whether dx is a port number. */
static bool is_port(const struct fathom_x86_insn *x)
{
	return x->i.mnemonic == ZYDIS_MNEMONIC_IN || x->i.mnemonic == ZYDIS_MNEMONIC_OUT ||
	       x->i.meta.category == ZYDIS_CATEGORY_IOSTRINGOP;
}

static void put_operand(struct printing *p, const ZydisDecodedOperand *o)
{
	switch (o->type) {
	case ZYDIS_OPERAND_TYPE_REGISTER:
		if (loads_segment(p->x) && o->size == 16 && o->reg.value >= ZYDIS_REGISTER_AX &&
		    o->reg.value <= ZYDIS_REGISTER_R15W && p->x->i.operand_width == 32)
			put_register(p, (ZydisRegister)(o->reg.value - ZYDIS_REGISTER_AX +
							ZYDIS_REGISTER_EAX));
		else if (o->reg.value == ZYDIS_REGISTER_ST0 &&
			 o->encoding != ZYDIS_OPERAND_ENCODING_MODRM_RM)
			put(p, p->intel ? "st" : "%st");
		else if (o->reg.value == ZYDIS_REGISTER_DX && !p->intel && is_port(p->x))
			put(p, "(%dx)");
		else
			put_register(p, o->reg.value);
		break;
	case ZYDIS_OPERAND_TYPE_MEMORY:
		if (p->intel)
			put_memory_intel(p, o);
		else
			put_memory_att(p, o);
		break;
	case ZYDIS_OPERAND_TYPE_POINTER:
		put(p, p->intel ? "" : "$");
		fathom_text_hex(p->t, o->ptr.segment);
		put(p, p->intel ? ":" : ",$");
		fathom_text_hex(p->t, o->ptr.offset);
		break;
	case ZYDIS_OPERAND_TYPE_IMMEDIATE:
		if (o->imm.is_relative) {
			put_relative(p, o);
		} else {
			put_constant(p, o);
		}
		break;
	default:
		break;
	}
}

static const char *broadcast_of(const struct fathom_x86_insn *x)
{
	switch (x->i.avx.broadcast.mode) {
	case ZYDIS_BROADCAST_MODE_1_TO_2:
		return "{1to2}";
	case ZYDIS_BROADCAST_MODE_1_TO_4:
		return "{1to4}";
	case ZYDIS_BROADCAST_MODE_1_TO_8:
		return "{1to8}";
	case ZYDIS_BROADCAST_MODE_1_TO_16:
		return "{1to16}";
	case ZYDIS_BROADCAST_MODE_1_TO_32:
		return "{1to32}";
	default:
		return "";
	}
}

/* Writes what follows an operand: the mask of a destination, the broadcast of memory. */
static void put_decorators(const struct printing *p, const ZydisDecodedOperand *o)
{
	const struct fathom_x86_insn *x = p->x;

	if (o->type == ZYDIS_OPERAND_TYPE_MEMORY && !x->i.avx.broadcast.is_static)
		put(p, broadcast_of(x));
	if (o != &x->o[0] || x->i.encoding != ZYDIS_INSTRUCTION_ENCODING_EVEX)
		return;
	if (x->i.avx.mask.reg > ZYDIS_REGISTER_K0 && x->i.avx.mask.reg <= ZYDIS_REGISTER_K7) {
		put(p, "{");
		put_register(p, x->i.avx.mask.reg);
		put(p, "}");
	}
	if (x->i.raw.evex.z)
		put(p, "{z}");
}

static const char *rounding_of(const struct fathom_x86_insn *x)
{
	switch (x->i.avx.rounding.mode) {
	case ZYDIS_ROUNDING_MODE_RN:
		return "{rn-sae}";
	case ZYDIS_ROUNDING_MODE_RD:
		return "{rd-sae}";
	case ZYDIS_ROUNDING_MODE_RU:
		return "{ru-sae}";
	case ZYDIS_ROUNDING_MODE_RZ:
		return "{rz-sae}";
	default:
		return x->i.avx.has_sae ? "{sae}" : "";
	}
}

static bool is_indirect_branch(const struct fathom_x86_insn *x)
{
	return (x->i.mnemonic == ZYDIS_MNEMONIC_CALL || x->i.mnemonic == ZYDIS_MNEMONIC_JMP) &&
	       (x->o[0].type == ZYDIS_OPERAND_TYPE_REGISTER ||
		x->o[0].type == ZYDIS_OPERAND_TYPE_MEMORY);
}

/* Chooses the operands to show: also those of string instructions, which Intel leaves out. */
static void choose_operands(struct printing *p)
{
	const struct fathom_x86_insn *x = p->x;

	for (unsigned k = 0; k < x->i.operand_count; k++) {
		const ZydisDecodedOperand *o = &x->o[k];
		const bool hidden = o->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN;

		if (o->encoding == ZYDIS_OPERAND_ENCODING_MASK || (hidden && !is_string(x)) ||
		    (k && x->i.mnemonic == ZYDIS_MNEMONIC_NOP) ||
		    (k && !p->intel && is_shift_by_one(x)))
			continue;
		if (hidden && (p->n == 2))
			break;
		if (hidden && o->type != ZYDIS_OPERAND_TYPE_MEMORY &&
		    (o->reg.value == ZYDIS_REGISTER_RDI || o->reg.value == ZYDIS_REGISTER_EDI ||
		     o->reg.value == ZYDIS_REGISTER_RSI || o->reg.value == ZYDIS_REGISTER_ESI))
			continue;
		p->o[p->n++] = o;
	}
}

static void put_operands(struct printing *p)
{
	const char *rounding = rounding_of(p->x);
	bool first = true;

	if (*rounding && !p->intel) {
		put(p, rounding);
		first = false;
	}
	for (unsigned k = 0; k < p->n; k++) {
		const bool forth = p->intel || p->x->i.mnemonic == ZYDIS_MNEMONIC_ENTER;
		const ZydisDecodedOperand *o = p->o[forth ? k : p->n - 1 - k];

		put(p, first ? "" : ",");
		if (!p->intel && is_indirect_branch(p->x))
			put(p, "*");
		put_operand(p, o);
		put_decorators(p, o);
		first = false;
	}
	if (*rounding && p->intel) {
		put(p, ",");
		put(p, rounding);
	}
}

/* Writes the prefixes that GNU shows: those that act as such, and those without effect. */
static void put_prefixes(const struct printing *p)
{
	const struct fathom_x86_insn *x = p->x;
	const uint64_t a = x->i.attributes;

	for (unsigned k = 0; k < x->i.raw.prefix_count; k++) {
		const uint8_t value = x->i.raw.prefixes[k].value;
		const bool ignored = x->i.raw.prefixes[k].type == ZYDIS_PREFIX_TYPE_IGNORED;

		switch (value) {
		case 0xf0:
			put(p, "lock ");
			break;
		case 0xf3:
			if (a & ZYDIS_ATTRIB_HAS_XRELEASE)
				put(p, "xrelease ");
			else if (a & ZYDIS_ATTRIB_HAS_REP)
				put(p, "rep ");
			else if (ignored || (a & ZYDIS_ATTRIB_HAS_REPZ))
				put(p, "repz ");
			break;
		case 0xf2:
			if (a & ZYDIS_ATTRIB_HAS_XACQUIRE)
				put(p, "xacquire ");
			else if (a & ZYDIS_ATTRIB_HAS_BND)
				put(p, "bnd ");
			else if (ignored || (a & ZYDIS_ATTRIB_HAS_REPNE))
				put(p, "repnz ");
			break;
		case 0x66:
			if (ignored)
				put(p, "data16 ");
			break;
		case 0x67:
			if (ignored)
				put(p, x->is64 ? "addr32 " : "addr16 ");
			break;
		case 0x2e:
			if (ignored || (x->is64 && !(a & ZYDIS_ATTRIB_HAS_BRANCH_NOT_TAKEN)))
				put(p, "cs ");
			break;
		case 0x3e:
			if (a & ZYDIS_ATTRIB_HAS_NOTRACK)
				put(p, "notrack ");
			else if (ignored)
				put(p, "ds ");
			break;
		case 0x26:
			if (ignored)
				put(p, "es ");
			break;
		case 0x36:
			if (ignored)
				put(p, "ss ");
			break;
		default:
			break;
		}
	}
}

/* Comparison predicates, which GNU puts into the name. */
static const char *const float_predicates[] = {
	"eq",    "lt",     "le",     "unord",    "neq",    "nlt",    "nle",    "ord",
	"eq_uq", "nge",    "ngt",    "false",    "neq_oq", "ge",     "gt",     "true",
	"eq_os", "lt_oq",  "le_oq",  "unord_s",  "neq_us", "nlt_uq", "nle_uq", "ord_s",
	"eq_us", "nge_uq", "ngt_uq", "false_os", "neq_os", "ge_oq",  "gt_oq",  "true_us",
};
static const char *const integer_predicates[] = {
	"eq", "lt", "le", NULL, "neq", "nlt", "nle", NULL
};

/* Returns the predicate that a comparison has in its name; NULL if it stays a constant. */
static const char *predicate_of(const struct fathom_x86_insn *x)
{
	const ZydisDecodedOperand *last =
		x->i.operand_count_visible ? &x->o[x->i.operand_count_visible - 1] : NULL;
	uint64_t value;

	if (!last || last->type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return NULL;
	value = last->imm.value.u;
	switch (x->i.mnemonic) {
	case ZYDIS_MNEMONIC_CMPPS:
	case ZYDIS_MNEMONIC_CMPPD:
	case ZYDIS_MNEMONIC_CMPSS:
	case ZYDIS_MNEMONIC_CMPSD:
		return value < 8 ? float_predicates[value] : NULL;
	case ZYDIS_MNEMONIC_VCMPPS:
	case ZYDIS_MNEMONIC_VCMPPD:
	case ZYDIS_MNEMONIC_VCMPSS:
	case ZYDIS_MNEMONIC_VCMPSD:
		return value < 32 ? float_predicates[value] : NULL;
	case ZYDIS_MNEMONIC_VPCMPB:
	case ZYDIS_MNEMONIC_VPCMPW:
	case ZYDIS_MNEMONIC_VPCMPD:
	case ZYDIS_MNEMONIC_VPCMPQ:
	case ZYDIS_MNEMONIC_VPCMPUB:
	case ZYDIS_MNEMONIC_VPCMPUW:
	case ZYDIS_MNEMONIC_VPCMPUD:
	case ZYDIS_MNEMONIC_VPCMPUQ:
		return value < 8 ? integer_predicates[value] : NULL;
	default:
		return NULL;
	}
}

/* Joins "cmpps" and "lt" to "cmpltps", "vpcmpub" and "lt" to "vpcmpltub". */
static void put_comparison(struct printing *p, const char *predicate)
{
	const char *name = base_name(p->x);
	const char *at = name;

	while (*at && !(at[0] == 'c' && at[1] == 'm' && at[2] == 'p'))
		at++;
	for (const char *s = name; s < at + 3 && *s; s++)
		fathom_text_char(p->t, *s);
	put(p, predicate);
	put(p, at + 3);
	p->n--;
}

/* Returns the name of pclmulqdq that stands for its constant. */
static const char *carryless_name(const struct fathom_x86_insn *x)
{
	const bool vex = x->i.mnemonic == ZYDIS_MNEMONIC_VPCLMULQDQ;
	const ZydisDecodedOperand *last =
		x->i.operand_count_visible ? &x->o[x->i.operand_count_visible - 1] : NULL;

	if (!last || last->type != ZYDIS_OPERAND_TYPE_IMMEDIATE ||
	    (!vex && x->i.mnemonic != ZYDIS_MNEMONIC_PCLMULQDQ))
		return NULL;
	switch (last->imm.value.u) {
	case 0x00:
		return vex ? "vpclmullqlqdq" : "pclmullqlqdq";
	case 0x01:
		return vex ? "vpclmulhqlqdq" : "pclmulhqlqdq";
	case 0x10:
		return vex ? "vpclmullqhqdq" : "pclmullqhqdq";
	case 0x11:
		return vex ? "vpclmulhqhqdq" : "pclmulhqhqdq";
	default:
		return NULL;
	}
}

static bool has_far_operand(const struct fathom_x86_insn *x)
{
	return x->i.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
}

static bool is_loop(const struct fathom_x86_insn *x)
{
	return x->i.mnemonic == ZYDIS_MNEMONIC_LOOP || x->i.mnemonic == ZYDIS_MNEMONIC_LOOPE ||
	       x->i.mnemonic == ZYDIS_MNEMONIC_LOOPNE;
}

/* Returns the operand size that the AT&T suffix tells. */
static unsigned suffix_bits(const struct fathom_x86_insn *x)
{
	const ZydisDecodedOperand *o = &x->o[0];

	if (loads_segment(x))
		return x->i.operand_width;
	if (o->type == ZYDIS_OPERAND_TYPE_REGISTER && o->reg.value >= ZYDIS_REGISTER_ES &&
	    o->reg.value <= ZYDIS_REGISTER_GS && x->i.operand_count_visible == 1)
		return x->i.stack_width; /* that push or pop moves */
	if (x->i.mnemonic == ZYDIS_MNEMONIC_CRC32)
		return x->o[1].size;
	if (x->i.mnemonic == ZYDIS_MNEMONIC_IN || x->i.mnemonic == ZYDIS_MNEMONIC_OUT)
		return x->o[x->i.mnemonic == ZYDIS_MNEMONIC_IN ? 0 : 1].size;
	if (has_far_operand(x))
		return x->i.operand_width;
	if (x->i.mnemonic == ZYDIS_MNEMONIC_XBEGIN || is_loop(x) ||
	    x->i.meta.category == ZYDIS_CATEGORY_CALL || x->i.meta.category == ZYDIS_CATEGORY_RET ||
	    x->i.mnemonic == ZYDIS_MNEMONIC_LEAVE || x->i.mnemonic == ZYDIS_MNEMONIC_ENTER)
		return x->i.operand_width == 16 ? 16 : x->i.stack_width;
	if (x->i.operand_count_visible && o->type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return x->i.operand_width;
	return x->i.operand_count_visible ? o->size : x->i.operand_width;
}

/* Writes movz or movs with the sizes of both operands. */
static bool put_extension(const struct printing *p)
{
	const struct fathom_x86_insn *x = p->x;

	if (x->i.mnemonic == ZYDIS_MNEMONIC_MOVZX)
		put(p, "movz");
	else if (x->i.mnemonic == ZYDIS_MNEMONIC_MOVSX)
		put(p, "movs");
	else
		return false;
	put_suffix(p, x->o[1].size);
	put_suffix(p, x->o[0].size);
	return true;
}

/* Writes the suffix of x87 instructions with memory, which is of its own kind. */
static void put_x87_suffix(const struct printing *p)
{
	const struct fathom_x86_insn *x = p->x;
	const ZydisDecodedOperand *o = NULL;

	for (unsigned k = 0; k < x->i.operand_count_visible; k++)
		if (x->o[k].type == ZYDIS_OPERAND_TYPE_MEMORY)
			o = &x->o[k];
	if (!o)
		return;
	switch (x->i.mnemonic) {
	case ZYDIS_MNEMONIC_FILD:
	case ZYDIS_MNEMONIC_FIST:
	case ZYDIS_MNEMONIC_FISTP:
	case ZYDIS_MNEMONIC_FISTTP:
	case ZYDIS_MNEMONIC_FIADD:
	case ZYDIS_MNEMONIC_FISUB:
	case ZYDIS_MNEMONIC_FISUBR:
	case ZYDIS_MNEMONIC_FIMUL:
	case ZYDIS_MNEMONIC_FIDIV:
	case ZYDIS_MNEMONIC_FIDIVR:
	case ZYDIS_MNEMONIC_FICOM:
	case ZYDIS_MNEMONIC_FICOMP:
		put(p, o->size == 16 ? "s" : o->size == 32 ? "l" : "ll");
		break;
	case ZYDIS_MNEMONIC_FLD:
	case ZYDIS_MNEMONIC_FST:
	case ZYDIS_MNEMONIC_FSTP:
	case ZYDIS_MNEMONIC_FADD:
	case ZYDIS_MNEMONIC_FSUB:
	case ZYDIS_MNEMONIC_FSUBR:
	case ZYDIS_MNEMONIC_FMUL:
	case ZYDIS_MNEMONIC_FDIV:
	case ZYDIS_MNEMONIC_FDIVR:
	case ZYDIS_MNEMONIC_FCOM:
	case ZYDIS_MNEMONIC_FCOMP:
		put(p, o->size == 32 ? "s" : o->size == 64 ? "l" : "t");
		break;
	case ZYDIS_MNEMONIC_FLDENV:
	case ZYDIS_MNEMONIC_FNSTENV:
	case ZYDIS_MNEMONIC_FRSTOR:
	case ZYDIS_MNEMONIC_FNSAVE:
		put(p, x->i.operand_width == 16 ? "s" : "l");
		break;
	default:
		break;
	}
}

/*
 * Returns the AT&T name that is exchanged for this order of operands: AT&T's assembler exchanged
 * the names, and all others have followed it.
 */
static const char *exchanged_name(const struct fathom_x86_insn *x)
{
	if (x->i.raw.modrm.mod != 3 || x->o[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    (x->i.opcode != 0xdc && x->i.opcode != 0xde))
		return NULL;
	switch (x->i.mnemonic) {
	case ZYDIS_MNEMONIC_FSUB:
		return "fsubr";
	case ZYDIS_MNEMONIC_FSUBR:
		return "fsub";
	case ZYDIS_MNEMONIC_FSUBP:
		return "fsubrp";
	case ZYDIS_MNEMONIC_FSUBRP:
		return "fsubp";
	case ZYDIS_MNEMONIC_FDIV:
		return "fdivr";
	case ZYDIS_MNEMONIC_FDIVR:
		return "fdiv";
	case ZYDIS_MNEMONIC_FDIVP:
		return "fdivrp";
	case ZYDIS_MNEMONIC_FDIVRP:
		return "fdivp";
	default:
		return NULL;
	}
}

/* Writes a conversion from an integer, with the integer's size. */
static bool put_conversion(const struct printing *p)
{
	const struct fathom_x86_insn *x = p->x;
	const ZydisDecodedOperand *o;

	switch (x->i.mnemonic) {
	case ZYDIS_MNEMONIC_CVTSI2SD:
	case ZYDIS_MNEMONIC_CVTSI2SS:
	case ZYDIS_MNEMONIC_VCVTSI2SD:
	case ZYDIS_MNEMONIC_VCVTSI2SS:
	case ZYDIS_MNEMONIC_VCVTUSI2SD:
	case ZYDIS_MNEMONIC_VCVTUSI2SS:
		o = &x->o[x->i.operand_count_visible - 1];
		put(p, base_name(x));
		put_suffix(p, o->size);
		return true;
	default:
		return false;
	}
}

static void put_name_att(struct printing *p)
{
	const struct fathom_x86_insn *x = p->x;
	const char *name = base_name(x);

	if (put_extension(p) || put_conversion(p))
		return;
	if (att_names[x->i.mnemonic])
		name = att_names[x->i.mnemonic];
	if (x->i.mnemonic == ZYDIS_MNEMONIC_MOVSD && is_string(x))
		name = "movsl";
	else if (x->i.mnemonic == ZYDIS_MNEMONIC_CMPSD && !is_string(x))
		name = "cmpsd";
	else if (x->i.mnemonic == ZYDIS_MNEMONIC_MOV && x->i.raw.imm[0].size == 64)
		name = "movabs";
	else if (x->i.mnemonic == ZYDIS_MNEMONIC_MOV && x->i.raw.disp.size == 64)
		name = "movabs";
	else if (x->i.mnemonic == ZYDIS_MNEMONIC_NOP && x->i.opcode == 0x90 &&
		 x->i.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && x->i.operand_width == 16)
		name = "xchg";
	if (is_x87(x) && exchanged_name(x))
		name = exchanged_name(x);
	if (has_far_operand(x) && x->i.mnemonic != ZYDIS_MNEMONIC_IRET &&
	    x->i.mnemonic != ZYDIS_MNEMONIC_IRETD && x->i.mnemonic != ZYDIS_MNEMONIC_IRETQ)
		put(p, "l");
	put(p, name);
	if (is_x87(x))
		put_x87_suffix(p);
	else if (x->i.mnemonic == ZYDIS_MNEMONIC_JMP && x->i.raw.imm[0].size != 8)
		put_suffix(p, has_far_operand(x) ? x->i.operand_width : x->i.stack_width);
	else if (x->i.mnemonic == ZYDIS_MNEMONIC_NOP && x->i.opcode == 0x90)
		put(p, x->i.operand_width == 16 ? "w" : "");
	else if (takes_suffix(x->i.mnemonic) && !is_string(x))
		put_suffix(p, suffix_bits(x));
}

static void put_name_intel(struct printing *p)
{
	const struct fathom_x86_insn *x = p->x;
	const char *name = base_name(x);

	if (x->i.mnemonic == ZYDIS_MNEMONIC_MOV &&
	    (x->i.raw.imm[0].size == 64 || x->i.raw.disp.size == 64))
		name = "movabs";
	put(p, name);
	/* The operands of the string instruction tell its size. */
	if (is_string(x) && p->n)
		p->t->len--;
}

/* Returns whether @x is 66 90, which is shown as what it does. */
static bool is_short_exchange(const struct fathom_x86_insn *x)
{
	return x->i.mnemonic == ZYDIS_MNEMONIC_NOP && x->i.opcode == 0x90 &&
	       x->i.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && x->i.operand_width == 16;
}

/* Mnemonics are padded to this width. */
#define NAME_WIDTH 6

static struct fathom_x86_place print(const struct fathom_x86_insn *x, struct fathom_text *t,
				     bool intel)
{
	struct printing p = { .x = x, .t = t, .intel = intel };
	const size_t start = t->len;
	const char *predicate = predicate_of(x);
	const char *carryless = carryless_name(x);

	choose_operands(&p);
	put_prefixes(&p);
	if (is_short_exchange(x)) {
		put(&p, intel ? "xchg   ax,ax" : "xchgw  %ax,%ax");
		return p.place;
	}
	if (carryless) {
		put(&p, carryless);
		p.n--;
	} else if (predicate) {
		put_comparison(&p, predicate);
	} else if (intel) {
		put_name_intel(&p);
	} else {
		put_name_att(&p);
	}
	if (!p.n)
		return p.place;
	while (t->len - start < NAME_WIDTH)
		fathom_text_char(t, ' ');
	fathom_text_char(t, ' ');
	put_operands(&p);
	return p.place;
}

struct fathom_x86_place fathom_x86_print_att(const struct fathom_x86_insn *x, struct fathom_text *t)
{
	return print(x, t, false);
}

struct fathom_x86_place fathom_x86_print_intel(const struct fathom_x86_insn *x,
					       struct fathom_text *t)
{
	return print(x, t, true);
}
