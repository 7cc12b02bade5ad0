/* SPDX-License-Identifier: MIT */
/* Descriptions of how stacks go through code (<fathom/jit.h>), as call frame instructions. */
#ifndef FATHOM_PUBLISH_FRAME_H
#define FATHOM_PUBLISH_FRAME_H

#include "fathom/jit.h"
#include "safe/dwarf/cfi_write.h"

struct fathom_unwind_arch;

/* A processor's ABI of frames. Registers have the numbers of DWARF. */
struct fathom_jit_machine {
	const struct fathom_unwind_arch *arch;
	uint64_t code_alignment;
	uint16_t elf; /* EM_ of elf.h */
	uint16_t sp;
	uint16_t fp;
	uint16_t return_register;
	uint8_t entry;      /* bytes on the stack above the stack pointer when a function begins */
	uint8_t set_frame;  /* bytes of the instruction that sets the frame pointer */
	uint8_t initial[8]; /* the instructions of its CIEs */
	uint8_t n_initial;
};

extern const struct fathom_jit_machine fathom_jit_x86_64;
extern const struct fathom_jit_machine fathom_jit_aarch64;

/* Returns the machine that this library was built for; NULL: its code cannot be published. */
const struct fathom_jit_machine *fathom_jit_own_machine(void);

/* A description that was read. Its bytes belong to it, or are those of the caller's eh_frame. */
struct fathom_jit_frame {
	struct fathom_cie_form cie;
	struct fathom_bytes instructions;
	uint64_t size; /* bytes of code that it is of; UINT64_MAX: all */
	uint64_t lsda;
	uint8_t *owned; /* freed by fathom_jit_frame_deinit() */
};

/* The fault of a change. */
struct fathom_jit_blame {
	const char *what;        /* static text */
	enum fathom_cause cause; /* FATHOM_CAUSE_CHANGE, or of which part */
	size_t part;             /* its number */
};

/*
 * Reads @from, the rule of a function of @size bytes at @code. FATHOM_END if it says nothing;
 * FATHOM_E_ARGUMENT if it contradicts itself; FATHOM_E_CORRUPT and FATHOM_E_UNSUPPORTED for an
 * eh_frame; FATHOM_E_MEMORY. On errors *ret is untouched, and @ret_blame says why.
 */
fathom_err fathom_jit_frame_read(const struct fathom_jit_unwind *from,
				 const struct fathom_jit_machine *m, uint64_t code, uint64_t size,
				 struct fathom_jit_frame *ret, struct fathom_jit_blame *ret_blame);
void fathom_jit_frame_deinit(struct fathom_jit_frame *f);

#endif
