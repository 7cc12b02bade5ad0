/* SPDX-License-Identifier: MIT */
/*
 * Relocations: entries of SHT_REL and SHT_RELA tables (System V gABI, "Relocation").
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_ELF_RELOCATION_H
#define FATHOM_ELF_RELOCATION_H

#include "safe/base/cursor.h"
#include "safe/elf/image.h"

struct fathom_relocation {
	uint64_t off;    /* r_offset: an offset in the section (relocatable files), or svma */
	uint64_t addend; /* sign-extended; 0 if it is stored at the relocated place */
	uint32_t symbol;
	uint32_t type;
};

/* Reads the entry at @c of an SHT_RELA table if @rela, else of an SHT_REL table. */
static inline void fathom_relocation_read(struct fathom_cursor *c, const struct fathom_image *image,
					  bool rela, struct fathom_relocation *ret)
{
	const uint8_t word = fathom_image_address_size(image);
	uint64_t info;

	ret->off = cur_uint(c, word);
	if (image->is64 && image->machine == EM_MIPS &&
	    image->swap == (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)) {
		/* MIPS64 little-endian has its own layout: symbol, then four bytes of types. */
		ret->symbol = cur_u32(c);
		ret->type = cur_u32(c) >> 24;
	} else {
		info = cur_uint(c, word);
		ret->symbol = image->is64 ? (uint32_t)(info >> 32) : (uint32_t)(info >> 8);
		ret->type = image->is64 ? (uint32_t)info : (uint32_t)(info & 0xff);
		if (image->machine == EM_SPARCV9 || (image->is64 && image->machine == EM_MIPS))
			ret->type &= 0xff;
	}
	ret->addend = 0;
	if (rela && image->is64)
		ret->addend = cur_u64(c);
	else if (rela)
		ret->addend = (uint64_t)(int32_t)cur_u32(c);
}

#endif
