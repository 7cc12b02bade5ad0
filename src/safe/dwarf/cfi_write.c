/* SPDX-License-Identifier: MIT */
#include "safe/dwarf/cfi_write.h"

void fathom_out_u8(struct fathom_out *o, uint8_t value)
{
	fathom_out_bytes(o, &value, sizeof value);
}

void fathom_out_u16(struct fathom_out *o, uint16_t value)
{
	fathom_out_bytes(o, &value, sizeof value);
}

void fathom_out_u32(struct fathom_out *o, uint32_t value)
{
	fathom_out_bytes(o, &value, sizeof value);
}

void fathom_out_u64(struct fathom_out *o, uint64_t value)
{
	fathom_out_bytes(o, &value, sizeof value);
}

void fathom_out_uleb(struct fathom_out *o, uint64_t value)
{
	while (value > 0x7f) {
		fathom_out_u8(o, (uint8_t)(value | 0x80));
		value >>= 7;
	}
	fathom_out_u8(o, (uint8_t)value);
}

void fathom_out_sleb(struct fathom_out *o, int64_t value)
{
	while (value < -0x40 || value > 0x3f) {
		fathom_out_u8(o, (uint8_t)((value & 0x7f) | 0x80));
		value >>= 7;
	}
	fathom_out_u8(o, (uint8_t)(value & 0x7f));
}

void fathom_out_align(struct fathom_out *o, size_t alignment)
{
	while ((o->n - o->origin) & (alignment - 1))
		fathom_out_u8(o, 0);
}

void fathom_out_patch(struct fathom_out *o, size_t off, uint32_t value)
{
	if (range_inside(off, sizeof value, o->cap))
		memcpy(o->at + off, &value, sizeof value);
}

void fathom_cfa_advance(struct fathom_out *o, uint32_t delta)
{
	if (!delta)
		return;
	if (delta < 0x40) {
		fathom_out_u8(o, (uint8_t)(DW_CFA_advance_loc | delta));
	} else if (delta <= UINT8_MAX) {
		fathom_out_u8(o, DW_CFA_advance_loc1);
		fathom_out_u8(o, (uint8_t)delta);
	} else if (delta <= UINT16_MAX) {
		fathom_out_u8(o, DW_CFA_advance_loc2);
		fathom_out_u16(o, (uint16_t)delta);
	} else {
		fathom_out_u8(o, DW_CFA_advance_loc4);
		fathom_out_u32(o, delta);
	}
}

void fathom_cfa_saved(struct fathom_out *o, uint16_t reg, uint32_t words)
{
	if (reg < 0x40) {
		fathom_out_u8(o, (uint8_t)(DW_CFA_offset | reg));
	} else {
		fathom_out_u8(o, DW_CFA_offset_extended);
		fathom_out_uleb(o, reg);
	}
	fathom_out_uleb(o, words);
}

void fathom_cfa_restore(struct fathom_out *o, uint16_t reg)
{
	if (reg < 0x40) {
		fathom_out_u8(o, (uint8_t)(DW_CFA_restore | reg));
	} else {
		fathom_out_u8(o, DW_CFA_restore_extended);
		fathom_out_uleb(o, reg);
	}
}

/* Writes the length of the entry at @off: entries end at multiples of 8 bytes. */
static void end_entry(struct fathom_out *o, size_t off)
{
	/* Zeros are DW_CFA_nop. */
	fathom_out_align(o, 8);
	fathom_out_patch(o, off, (uint32_t)(o->n - off - 4));
}

/* The augmentation: z with the encodings that are not the usual ones. */
static void put_augmentation(struct fathom_out *o, const struct fathom_cie_form *cie)
{
	fathom_out_u8(o, 'z');
	if (cie->personality)
		fathom_out_u8(o, 'P');
	if (cie->has_lsda)
		fathom_out_u8(o, 'L');
	fathom_out_u8(o, 'R');
	if (cie->is_signal_frame)
		fathom_out_u8(o, 'S');
	if (cie->uses_b_key)
		fathom_out_u8(o, 'B');
	fathom_out_u8(o, 0);
}

size_t fathom_cie_write(struct fathom_out *o, const struct fathom_cie_form *cie)
{
	const size_t off = o->n;

	fathom_out_u32(o, 0);
	fathom_out_u32(o, 0);
	fathom_out_u8(o, 1); /* version */
	put_augmentation(o, cie);
	fathom_out_uleb(o, cie->code_alignment);
	fathom_out_sleb(o, cie->data_alignment);
	fathom_out_u8(o, (uint8_t)cie->return_register);
	/* DW_EH_PE_absptr is 0. */
	fathom_out_uleb(o, (cie->personality ? 9u : 0) + (cie->has_lsda ? 1u : 0) + 1u);
	if (cie->personality) {
		fathom_out_u8(o, 0);
		fathom_out_u64(o, cie->personality);
	}
	if (cie->has_lsda)
		fathom_out_u8(o, 0);
	fathom_out_u8(o, cie->is_relative ? 0x1b : 0); /* DW_EH_PE_pcrel | DW_EH_PE_sdata4 */
	fathom_out_range(o, cie->instructions);
	end_entry(o, off);
	return off;
}

size_t fathom_fde_write(struct fathom_out *o, const struct fathom_cie_form *cie, size_t cie_off,
			uint64_t low, uint64_t size, uint64_t lsda,
			struct fathom_bytes instructions)
{
	const size_t off = o->n;

	fathom_out_u32(o, 0);
	fathom_out_u32(o, (uint32_t)(off + 4 - cie_off));
	if (cie->is_relative) {
		fathom_out_u32(o, (uint32_t)low);
		fathom_out_u32(o, (uint32_t)size);
	} else {
		fathom_out_u64(o, low);
		fathom_out_u64(o, size);
	}
	fathom_out_uleb(o, cie->has_lsda ? 8 : 0);
	if (cie->has_lsda)
		fathom_out_u64(o, lsda);
	fathom_out_range(o, instructions);
	end_entry(o, off);
	return off;
}
