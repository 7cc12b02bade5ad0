/* SPDX-License-Identifier: MIT */
/*
 * One instruction as a decoder leaves it: its text, what it refers to, and what it does to the
 * registers that hold addresses. The code that names these things does not depend on the machine.
 *
 * Decoders are libraries (Zydis, Capstone), opened on first use.
 */
#ifndef FATHOM_DISASM_CODE_H
#define FATHOM_DISASM_CODE_H

#include "fathom/disasm.h"
#include "safe/base/error.h"
#include "safe/base/text.h"

/* Bytes of the longest instruction of any machine. */
#define FATHOM_MAX_INSN 15
/* Room for the text of one instruction. */
#define FATHOM_INSN_TEXT 256
/* No register, or one that is not followed. */
#define FATHOM_NO_REGISTER 0xff

/* Effects of an instruction on a register that is followed. */
enum fathom_effect {
	FATHOM_EFFECT_NONE,
	FATHOM_EFFECT_SET,    /* reg = value */
	FATHOM_EFFECT_ADD,    /* reg = base + value */
	FATHOM_EFFECT_INSERT, /* bits [shift, shift + 16) of reg = value */
	FATHOM_EFFECT_LOAD,   /* reg = what the slot holds */
};

struct fathom_code {
	uint64_t address;
	uint64_t value;       /* what it refers to, or of the effect: see kind and effect */
	uint64_t constant;    /* a constant beside value, see has_constant */
	uint32_t text;        /* where its text starts among all texts */
	uint16_t text_size;   /* bytes */
	uint16_t operand;     /* where in the text a direct branch states its address */
	uint8_t operand_size; /* bytes of that address; 0: none */
	uint8_t size;         /* bytes */
	uint8_t kind;         /* enum fathom_reference */
	uint8_t flow;         /* enum fathom_flow */
	uint8_t effect;       /* enum fathom_effect */
	uint8_t slot_size;    /* bytes read or written in the memory that it refers to */
	uint8_t reg;          /* that the effect changes, or that a branch goes to */
	uint8_t base;         /* that value is added to, or FATHOM_NO_REGISTER */
	uint8_t shift;        /* bits */
	uint8_t has_constant : 1;
	uint8_t padding : 1;
	uint8_t bad : 1;      /* undecodable */
	uint8_t relative : 1; /* value is relative to the instruction, so it is an address */
	uint8_t pointer : 1;  /* the slot may hold an address: general registers take part */
	uint8_t computes : 1; /* adds registers, or reads or jumps through memory with an index */
	uint32_t writes;      /* bits of the registers that it changes */
};

/* How an instruction moves addresses and words between registers and the stack. */
enum fathom_move {
	FATHOM_MOVE_OTHER, /* nothing that could be followed: see writes */
	FATHOM_MOVE_COPY,  /* reg = base + value */
	FATHOM_MOVE_LOAD,  /* reg = the word at base + value */
	FATHOM_MOVE_STORE, /* width bytes at base + value = reg */
	FATHOM_MOVE_PUSH,  /* width bytes below the stack pointer = reg */
	FATHOM_MOVE_POP,   /* reg, or else the bytes at base + value = width bytes of the stack */
	FATHOM_MOVE_LEAVE, /* stack pointer = frame pointer, then pop the frame pointer */
	FATHOM_MOVE_ENTER  /* push the frame pointer, set it, value bytes of room */
};

/*
 * The effect of an instruction on the stack. Registers are numbered as in its encoding; where reg
 * or base is FATHOM_NO_REGISTER, the word or the address is not known.
 */
struct fathom_stack_code {
	uint64_t value;  /* of the move; of a return: bytes that it takes beside the address */
	uint64_t target; /* of a direct branch or call */
	uint32_t writes; /* bits of the registers that it changes, without those of its move */
	uint16_t width;  /* bytes */
	uint8_t size;    /* bytes of the instruction */
	uint8_t flow;    /* enum fathom_flow */
	uint8_t move;    /* enum fathom_move */
	uint8_t reg;
	uint8_t base;
	bool bad;       /* undecodable, or of another kind of code: a far call or return */
	bool is_direct; /* target is valid */
	/* a jump to the address in a word at a fixed place: a stub, or a tail call */
	bool is_by_slot;
	bool is_landing; /* marks where indirect branches may lead: endbr */
};

/* Most accesses to memory of one instruction that are told. */
#define FATHOM_MAX_ACCESSES 4

/* An access of an instruction to memory. Registers are numbered as in its encoding. */
struct fathom_code_access {
	uint64_t displacement; /* with the address of the next instruction if it is relative */
	uint16_t size;         /* bytes; 0: not stated */
	uint8_t base;          /* FATHOM_NO_REGISTER: none */
	uint8_t index;         /* FATHOM_NO_REGISTER: none */
	uint8_t scale;
	bool reads;
	bool writes;
};

/* An open decoder for one machine and one syntax. For one thread. */
struct fathom_code_decoder {
	/*
	 * Decodes the instruction at the start of @bytes, which is not empty, and writes its text
	 * unless @text is NULL. If it cannot be decoded, the result is bad and has the size to
	 * skip.
	 */
	void (*decode)(struct fathom_code_decoder *d, struct fathom_bytes bytes, uint64_t address,
		       struct fathom_code *ret, struct fathom_text *text);
	/* Decodes the same for what it does to the stack. NULL: not for this machine. */
	void (*decode_stack)(struct fathom_code_decoder *d, struct fathom_bytes bytes,
			     uint64_t address, struct fathom_stack_code *ret);
	/*
	 * Decodes the same for the memory that it accesses; returns how many accesses there are, 0
	 * if the address of one of them is not made of general registers alone. NULL: not for this
	 * machine.
	 */
	unsigned (*decode_accesses)(struct fathom_code_decoder *d, struct fathom_bytes bytes,
				    uint64_t address,
				    struct fathom_code_access ret[FATHOM_MAX_ACCESSES]);
	void (*close)(struct fathom_code_decoder *d);
	const char *comment; /* what starts a comment */
	uint32_t clobbered;  /* bits of the registers that calls change */
	uint8_t word;        /* bytes of an address */
};

/* Opens the library; returns FATHOM_E_UNSUPPORTED if there is none, or if built without. */
fathom_err fathom_x86_open(bool is64, bool intel, struct fathom_code_decoder **ret,
			   struct fathom_errinfo *reterr);
fathom_err fathom_aarch64_open(struct fathom_code_decoder **ret, struct fathom_errinfo *reterr);

#endif
