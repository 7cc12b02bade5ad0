/* SPDX-License-Identifier: MIT */
/*
 * x86 instructions as text, from what Zydis decodes. Zydis's own formatter is not used: its AT&T
 * syntax has other mnemonics and operands than GNU's for three instructions of four.
 */
#ifndef FATHOM_DISASM_X86_H
#define FATHOM_DISASM_X86_H

#include <Zydis/Zydis.h>

#include "host/disasm/code.h"

/* The functions of Zydis that are used; in others, versions 4.0 and 4.1 differ. */
struct fathom_zydis {
	ZyanU64 (*version)(void);
	ZyanStatus (*decoder_init)(ZydisDecoder *d, ZydisMachineMode mode, ZydisStackWidth width);
	ZyanStatus (*decode_instruction)(const ZydisDecoder *d, ZydisDecoderContext *context,
					 const void *buffer, ZyanUSize length,
					 ZydisDecodedInstruction *instruction);
	ZyanStatus (*decode_operands)(const ZydisDecoder *d, const ZydisDecoderContext *context,
				      const ZydisDecodedInstruction *instruction,
				      ZydisDecodedOperand *operands, ZyanU8 operand_count);
	const char *(*mnemonic)(ZydisMnemonic mnemonic);
	const char *(*register_name)(ZydisRegister reg);
	ZydisRegister (*largest)(ZydisMachineMode mode, ZydisRegister reg);
	ZyanI8 (*register_id)(ZydisRegister reg);
};

/* A decoded instruction to print. */
struct fathom_x86_insn {
	const struct fathom_zydis *zydis;
	const uint8_t *bytes;
	uint64_t address;
	ZydisDecodedInstruction i;
	ZydisDecodedOperand o[ZYDIS_MAX_OPERAND_COUNT];
	bool is64;
};

/* Where the text states the address of a direct branch; size 0: nowhere. */
struct fathom_x86_place {
	uint16_t at;
	uint8_t size;
};

struct fathom_x86_place fathom_x86_print_att(const struct fathom_x86_insn *x,
					     struct fathom_text *t);
struct fathom_x86_place fathom_x86_print_intel(const struct fathom_x86_insn *x,
					       struct fathom_text *t);

/* Returns the address that relative operand @o stands for. */
uint64_t fathom_x86_branch_target(const struct fathom_x86_insn *x, const ZydisDecodedOperand *o);

/*
 * Returns in *@ret what @x does to the stack, but for its flow. @gpr numbers the general register
 * that each register is a part of.
 */
void fathom_x86_stack(const struct fathom_x86_insn *x, const uint8_t *gpr,
		      struct fathom_stack_code *ret);

#endif
