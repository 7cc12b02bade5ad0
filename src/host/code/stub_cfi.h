/* SPDX-License-Identifier: MIT */
/*
 * Call frame information of stubs: how stacks go through code that is put beside compiled code. It
 * is one FDE for stubs that lie one after the other, each of which begins with the stack as it is
 * at the instruction that leads to it.
 */
#ifndef FATHOM_CODE_STUB_CFI_H
#define FATHOM_CODE_STUB_CFI_H

#include "fathom/jit.h"
#include "safe/dwarf/cfi_write.h"

/* DWARF's numbers of the registers of a processor. */
struct fathom_stub_registers {
	uint16_t sp;
	uint16_t pc;       /* the return column of rows whose caller's link register is kept */
	uint16_t link;     /* of return addresses; 0: calls push them */
	uint16_t saved[2]; /* at the lower end of a stub's frame, which has n_saved of them */
	uint16_t n_saved;
};

struct fathom_stub_cfi {
	const struct fathom_stub_registers *registers;
	uint16_t pc;             /* column of the return address */
	uint8_t *bytes;          /* NULL without memory */
	struct fathom_out rules; /* within them */
	struct fathom_out frame; /* within them, after the rules */
};

/*
 * Begins that of up to @n stubs of a processor. The return address is that of column @pc: the
 * link register, or pc, which is set by fathom_stub_cfi_caller(). Without memory
 * nothing is written.
 */
void fathom_stub_cfi_init(struct fathom_stub_cfi *c, const struct fathom_stub_registers *registers,
			  uint16_t pc, size_t n);
void fathom_stub_cfi_deinit(struct fathom_stub_cfi *c);

/* From here on the caller goes on at @avma; it has all registers. */
void fathom_stub_cfi_caller(struct fathom_stub_cfi *c, uint64_t avma);
/* From here on code was called, and has pushed nothing. */
void fathom_stub_cfi_called(struct fathom_stub_cfi *c);

/* From here on the frame of the stub has @bytes, with the saved registers; 0: there is none. */
void fathom_stub_cfi_frame(struct fathom_stub_cfi *c, uint32_t bytes);

/* Goes on to @size bytes from here. */
void fathom_stub_cfi_advance(struct fathom_stub_cfi *c, size_t size);

/*
 * Ends it: it is that of @size bytes at @avma. Returns the rule, of bytes that @c owns;
 * FATHOM_JIT_NONE without memory.
 */
struct fathom_jit_unwind fathom_stub_cfi_end(struct fathom_stub_cfi *c, uint64_t avma,
					     uint64_t size);

#endif
