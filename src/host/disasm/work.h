/* SPDX-License-Identifier: MIT */
/*
 * Disassembles in three steps: decodes all instructions (range.c), follows the addresses that they
 * make (follow.c), names the addresses as one batch and puts the names into the texts
 * (operand_names.c).
 */
#ifndef FATHOM_DISASM_WORK_H
#define FATHOM_DISASM_WORK_H

#include "fathom/symbolize.h"
#include "host/base/array.h"
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
	struct fathom_arena arena;     /* names and frames that the answers do not have */
	struct fathom_answers *names;  /* of what instructions refer to */
	struct fathom_answers *places; /* of the instructions themselves */
};

/* Symbol to which an instruction refers by a relocation. */
struct fathom_external {
	struct fathom_str name; /* data NULL: none */
	uint64_t offset;
};

struct fathom_codes {
	FATHOM_ARRAY_OF(struct fathom_code);
};

struct fathom_externals {
	FATHOM_ARRAY_OF(struct fathom_external);
};

/* A disassembly being made. */
struct fathom_disasm_work {
	struct fathom_target *target; /* NULL: none */
	struct fathom_disasm_options options;
	struct fathom_code_decoder *decoder;
	struct fathom_fixups *fixups; /* of the file, or NULL */
	struct fathom_object *object; /* the file, or NULL */
	bool relocatable;             /* the linker will still fill in addresses */
	bool movable; /* loaded anywhere: its code states no addresses, its slots hold none */
	struct fathom_bytes bytes; /* the code */
	uint64_t start;            /* address of bytes */
	struct fathom_codes codes;
	struct fathom_externals external; /* one per code, or empty */
	struct fathom_bytes_array text;   /* their texts */
	struct fathom_disasm *to;
};

static inline struct fathom_code *fathom_work_code(const struct fathom_disasm_work *w, size_t i)
{
	return (struct fathom_code *)w->codes.items + i;
}

/* Applies relocations to what instructions of a relocatable file refer to. */
fathom_err fathom_disasm_relocate(struct fathom_disasm_work *w);

/* Does the same for @c; returns in @e what only the relocation tells. */
void fathom_disasm_relocate_one(const struct fathom_disasm_work *w, struct fathom_code *c,
				struct fathom_external *e);

/* Finds the addresses that instructions put together in registers. */
fathom_err fathom_disasm_follow(struct fathom_disasm_work *w);

/* Makes the named instructions of w->to. */
fathom_err fathom_disasm_name(struct fathom_disasm_work *w, struct fathom_errinfo *reterr);

#endif
