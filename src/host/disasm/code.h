/* SPDX-License-Identifier: MIT */
/*
 * One instruction as a decoder leaves it: its text, what it refers to, and what it does to the
 * registers that hold addresses. What names these things does not know which machine it is for.
 *
 * Decoders are libraries (Zydis, Capstone), opened when they are first needed.
 */
#ifndef FATHOM_DISASM_CODE_H
#define FATHOM_DISASM_CODE_H

#include "fathom/disasm.h"
#include "safe/base/error.h"
#include "safe/base/text.h"

/* The longest instruction of any machine, bytes. */
#define FATHOM_MAX_INSN 15
/* Room for the text of one instruction. */
#define FATHOM_INSN_TEXT 256
/* A register that is none of those that are followed. */
#define FATHOM_NO_REGISTER 0xff

/* What an instruction does to one register that is followed. */
enum fathom_effect {
	FATHOM_EFFECT_NONE,
	FATHOM_EFFECT_SET,    /* reg = value */
	FATHOM_EFFECT_ADD,    /* reg = base + value */
	FATHOM_EFFECT_INSERT, /* 16 bits of reg, from bit shift on, = value */
	FATHOM_EFFECT_LOAD,   /* reg = what the slot holds */
};

struct fathom_code {
	uint64_t address;
	uint64_t value;       /* that it refers to, or of the effect, as kind and effect say */
	uint64_t constant;    /* beside value, see has_constant */
	uint32_t text;        /* where its text starts among all */
	uint16_t text_size;   /* bytes */
	uint16_t operand;     /* where in it the address of a direct branch stands, */
	uint8_t operand_size; /* and how many bytes it takes; 0: none does */
	uint8_t size;         /* bytes */
	uint8_t kind;         /* enum fathom_reference */
	uint8_t flow;         /* enum fathom_flow */
	uint8_t effect;       /* enum fathom_effect */
	uint8_t slot_size;    /* bytes read or written in memory that it refers to */
	uint8_t reg;          /* of the effect, or that a branch goes to */
	uint8_t base;         /* that value is to be added to, or FATHOM_NO_REGISTER */
	uint8_t shift;        /* bits */
	uint8_t has_constant : 1;
	uint8_t padding : 1;
	uint8_t bad : 1;      /* undecodable */
	uint8_t relative : 1; /* to the instruction: an address whatever it is */
	uint8_t pointer : 1;  /* the slot may hold an address: general registers take part */
	uint8_t computes : 1; /* adds registers, or reads or jumps through memory with an index */
	uint32_t writes;      /* registers that it leaves with other values, as bits */
};

/* A decoder that is open, for one machine and one syntax. For one thread. */
struct fathom_decoder {
	/*
	 * Decodes the instruction at the start of @bytes, of which there is at least one, and
	 * writes its text. What cannot be decoded is an instruction, too: bad, of the size that is
	 * to be skipped.
	 */
	void (*decode)(struct fathom_decoder *d, struct fathom_bytes bytes, uint64_t address,
		       struct fathom_code *ret, struct fathom_text *text);
	void (*close)(struct fathom_decoder *d);
	const char *comment; /* what stands before a comment */
	uint32_t clobbered;  /* registers that calls leave with other values */
	uint8_t word;        /* bytes of an address */
};

/* Opens the library; FATHOM_E_UNSUPPORTED where there is none, or this build knows none. */
fathom_err fathom_x86_open(bool is64, bool intel, struct fathom_decoder **ret,
			   struct fathom_errinfo *reterr);
fathom_err fathom_aarch64_open(struct fathom_decoder **ret, struct fathom_errinfo *reterr);

#endif
