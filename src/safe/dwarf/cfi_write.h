/* SPDX-License-Identifier: MIT */
/*
 * Writes call frame information: CIEs and FDEs of an .eh_frame (LSB 5.0, 10.6.1), 32-bit DWARF,
 * addresses as they are (DW_EH_PE_absptr), or relative to where they stand (DW_EH_PE_pcrel |
 * DW_EH_PE_sdata4) for files, for machines with words of 64 bits and our byte order.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_DWARF_CFI_WRITE_H
#define FATHOM_DWARF_CFI_WRITE_H

#include "safe/base/bytes.h"
#include "safe/dwarf/cfa.h"

/* Bytes after each other. What does not fit is counted, not written: with cap 0 it measures. */
struct fathom_out {
	uint8_t *at;
	size_t n;
	size_t cap;
	size_t origin; /* offset that alignment counts from */
};

static inline void fathom_out_bytes(struct fathom_out *o, const void *bytes, size_t size)
{
	if (size && range_inside(o->n, size, o->cap))
		memcpy(o->at + o->n, bytes, size);
	o->n += size;
}

/* Appends @bytes, of this process. */
static inline void fathom_out_range(struct fathom_out *o, struct fathom_bytes bytes)
{
	fathom_out_bytes(o, bytes.data, (size_t)bytes.size);
}

void fathom_out_u8(struct fathom_out *o, uint8_t value);
void fathom_out_u16(struct fathom_out *o, uint16_t value);
void fathom_out_u32(struct fathom_out *o, uint32_t value);
void fathom_out_u64(struct fathom_out *o, uint64_t value);
void fathom_out_uleb(struct fathom_out *o, uint64_t value);
void fathom_out_sleb(struct fathom_out *o, int64_t value);

/* Appends zeros until the bytes from the origin on are a multiple of @alignment, a power of 2. */
void fathom_out_align(struct fathom_out *o, size_t alignment);

/* Writes @value over 4 bytes at @off, if they were written. */
void fathom_out_patch(struct fathom_out *o, size_t off, uint32_t value);

/* Appends a rule from the place @delta bytes further on: nothing for 0. */
void fathom_cfa_advance(struct fathom_out *o, uint32_t delta);

/* Appends that @reg is saved @words words below the CFA, of CIEs whose data alignment is -8. */
void fathom_cfa_saved(struct fathom_out *o, uint16_t reg, uint32_t words);

/* Appends that @reg has the rule of its CIE again. */
void fathom_cfa_restore(struct fathom_out *o, uint16_t reg);

/* Contents of a CIE. */
struct fathom_cie_form {
	struct fathom_bytes instructions; /* the initial ones */
	uint64_t personality;             /* address; 0: none */
	uint64_t code_alignment;
	int64_t data_alignment;
	uint64_t return_register;
	uint8_t has_lsda;
	uint8_t is_signal_frame;
	uint8_t uses_b_key;
	/* addresses of code are of 4 bytes, relative to where they stand; then no personality */
	uint8_t is_relative;
};

/* Appends the CIE, padded to 8 bytes. Returns its offset. */
size_t fathom_cie_write(struct fathom_out *o, const struct fathom_cie_form *cie);

/*
 * Appends an FDE, padded to 8 bytes, of the CIE at offset @cie_off. @low is an address, or relative
 * to the field that has it; @lsda is written if @cie has one. Returns its offset.
 */
size_t fathom_fde_write(struct fathom_out *o, const struct fathom_cie_form *cie, size_t cie_off,
			uint64_t low, uint64_t size, uint64_t lsda,
			struct fathom_bytes instructions);

#endif
