/* SPDX-License-Identifier: MIT */
/*
 * Disassembling in three steps: decode all instructions (range.c), follow what addresses they make
 * (follow.c), name the addresses as one batch and put the names into the texts
 * (operand_names.c).
 */
#ifndef FATHOM_DISASM_WORK_H
#define FATHOM_DISASM_WORK_H

#include "fathom/symbolize.h"
#include "host/base/memory.h"
#include "host/disasm/code.h"
#include "host/file/fixups.h"
#include "host/symbolize/answers.h"

struct fathom_disasm {
	struct fathom_instruction *instructions;
	size_t n;
	uint64_t next;
	uint8_t *bytes;
	char *texts;
	struct fathom_arena arena;     /* names and frames that are in no answers */
	struct fathom_answers *names;  /* of what instructions refer to */
	struct fathom_answers *places; /* of the instructions themselves */
};

/* What instructions refer to, where the bytes alone do not tell: a relocation's symbol. */
struct fathom_external {
	struct fathom_str name; /* data NULL: none */
	uint64_t offset;
};

/* A disassembly being made. */
struct fathom_disasm_work {
	struct fathom_target *target; /* NULL: none */
	struct fathom_disasm_options options;
	struct fathom_decoder *decoder;
	struct fathom_fixups *fixups; /* of a file, else NULL */
	struct fathom_object *object; /* a file, else NULL */
	bool relocatable;             /* addresses in bytes are not yet what they will be */
	bool movable; /* a file of which the loader decides where it is: it states no addresses, and
		       * slots hold none */
	struct fathom_bytes bytes;    /* of the code */
	uint64_t start;               /* where they are */
	struct fathom_array codes;    /* struct fathom_code */
	struct fathom_array external; /* struct fathom_external, for each code; or empty */
	struct fathom_array text;     /* char: their texts */
	struct fathom_disasm *to;
};

static inline struct fathom_code *fathom_work_code(const struct fathom_disasm_work *w, size_t i)
{
	return (struct fathom_code *)w->codes.data + i;
}

/* Applies relocations to what instructions of a relocatable file refer to. */
fathom_err fathom_disasm_relocate(struct fathom_disasm_work *w);

/* The same for @c, with what the relocation says beyond it. */
void fathom_disasm_relocate_one(const struct fathom_disasm_work *w, struct fathom_code *c,
				struct fathom_external *e);

/* Finds the addresses that instructions put together in registers. */
fathom_err fathom_disasm_follow(struct fathom_disasm_work *w);

/* Makes the instructions of w->to, with all names. */
fathom_err fathom_disasm_name(struct fathom_disasm_work *w, struct fathom_errinfo *reterr);

#endif
