/* SPDX-License-Identifier: MIT */
#include "safe/unwind/sframe.h"

#include <elf.h>

#include "safe/base/sort.h"

#define MAGIC 0xdee2

/* Flags of the header. */
#define FDES_SORTED 1u
#define START_PCREL 4u /* starts of functions are relative to their own fields */

/* func_info: what the starts of rows are, and how long. */
#define START_SIZE_BITS 0x0fu
#define IS_MASKED       0x10u /* rows repeat in blocks: a PLT */

/* A row's info. */
#define BASE_IS_SP      0x01u
#define OFFSET_COUNT(i) ((i) >> 1 & 15u)
#define OFFSET_BITS(i)  ((i) >> 5 & 3u)
#define IS_RA_MANGLED   0x80u

/* Bytes of a function's entry, by version. */
enum { FDE_SIZE_1 = 17, FDE_SIZE_2 = 20 };

/* Bytes of a block of a masked function of version 1, which does not state them. */
#define BLOCK_SIZE_1 16

/* Returns whether @abi is the one of @arch, in its byte order. */
static bool is_of(uint8_t abi, const struct fathom_unwind_arch *arch)
{
	return arch->machine == EM_X86_64    ? abi == 3
	       : arch->machine == EM_AARCH64 ? abi == 1 || abi == 2
					     : false;
}

fathom_err fathom_sframe_init(struct fathom_sframe *s, struct fathom_bytes section, uint64_t svma,
			      bool swap, const struct fathom_unwind_arch *arch)
{
	struct fathom_cursor c = cur_init(section, swap);
	const uint16_t magic = cur_u16(&c);
	const uint8_t version = cur_u8(&c);
	const uint8_t flags = cur_u8(&c);
	const uint8_t abi = cur_u8(&c);
	const int8_t fp_offset = (int8_t)cur_u8(&c);
	const int8_t ra_offset = (int8_t)cur_u8(&c);
	const uint8_t aux_size = cur_u8(&c);
	const uint32_t n_fdes = cur_u32(&c);
	uint32_t fres_size;
	uint32_t fdes_off;
	uint32_t fres_off;

	(void)cur_u32(&c); /* the number of rows */
	fres_size = cur_u32(&c);
	fdes_off = cur_u32(&c);
	fres_off = cur_u32(&c);
	cur_skip(&c, aux_size);
	if (!cur_ok(&c) || magic != MAGIC)
		return FATHOM_E_CORRUPT;
	if ((version != 1 && version != 2) || !is_of(abi, arch))
		return FATHOM_E_UNSUPPORTED;
	*s = (struct fathom_sframe){ .section = section,
				     .svma = svma,
				     .swap = swap,
				     .n_fdes = n_fdes,
				     .fde_size = version == 1 ? FDE_SIZE_1 : FDE_SIZE_2,
				     .version = version,
				     .fp_offset = fp_offset,
				     .ra_offset = ra_offset,
				     .is_sorted = flags & FDES_SORTED,
				     .is_relative = flags & START_PCREL };
	s->fdes = (struct fathom_bytes){ c.p, cur_left(&c) };
	s->fdes_svma = svma + (uint64_t)(c.p - section.data) + fdes_off;
	if (fdes_off > s->fdes.size || n_fdes > (s->fdes.size - fdes_off) / s->fde_size ||
	    fres_off > s->fdes.size || fres_size > s->fdes.size - fres_off)
		return FATHOM_E_CORRUPT;
	s->fres = bytes_slice(s->fdes, fres_off, fres_size);
	s->fdes = bytes_slice(s->fdes, fdes_off, (uint64_t)n_fdes * s->fde_size);
	return FATHOM_OK;
}

/* A function's entry. */
struct function {
	uint64_t low; /* svma */
	uint64_t size;
	uint32_t fres_off;
	uint32_t n_fres;
	uint8_t info;
	uint8_t block; /* bytes, of a masked one */
};

static struct function read_function(const struct fathom_sframe *s, uint64_t i)
{
	struct fathom_cursor c =
		cur_init(bytes_slice(s->fdes, i * s->fde_size, s->fde_size), s->swap);
	const uint64_t base = s->is_relative ? s->fdes_svma + i * s->fde_size : s->svma;
	struct function f = { .low = base + (uint64_t)(int32_t)cur_u32(&c) };

	f.size = cur_u32(&c);
	f.fres_off = cur_u32(&c);
	f.n_fres = cur_u32(&c);
	f.info = cur_u8(&c);
	f.block = s->version == 1 ? BLOCK_SIZE_1 : cur_u8(&c);
	return f;
}

/* Finds the function that covers @svma. */
static bool find_function(const struct fathom_sframe *s, uint64_t svma, struct function *ret)
{
	uint64_t n;

	if (s->is_sorted) {
		n = FATHOM_BISECT(s->n_fdes, i, read_function(s, i).low <= svma);
		*ret = n ? read_function(s, n - 1) : (struct function){ 0 };
		return n && svma - ret->low < ret->size;
	}
	for (n = 0; n < s->n_fdes; n++) {
		*ret = read_function(s, n);
		if (svma >= ret->low && svma - ret->low < ret->size)
			return true;
	}
	return false;
}

/* One row, as it stands in the section. */
struct fre {
	uint32_t start; /* from the function's start, or in a block */
	uint8_t info;
	int32_t offset[3];
};

static int32_t read_offset(struct fathom_cursor *c, uint8_t bits)
{
	return bits == 0   ? (int8_t)cur_u8(c)
	       : bits == 1 ? (int16_t)cur_u16(c)
			   : (int32_t)cur_u32(c);
}

/* Reads the next row; returns false if it is damaged. */
static bool read_fre(struct fathom_cursor *c, uint8_t start_size, struct fre *ret)
{
	uint32_t count;

	*ret = (struct fre){ .start = start_size == 0   ? cur_u8(c)
				      : start_size == 1 ? cur_u16(c)
							: cur_u32(c) };
	ret->info = cur_u8(c);
	count = OFFSET_COUNT(ret->info);
	if (!count || count > 3 || OFFSET_BITS(ret->info) == 3)
		return false;
	for (uint32_t i = 0; i < count; i++)
		ret->offset[i] = read_offset(c, OFFSET_BITS(ret->info));
	return cur_ok(c);
}

static void set_rule(struct fathom_row *row, uint8_t number, uint8_t kind, int64_t offset)
{
	row->rule[number] = (struct fathom_rule){ .kind = kind, .offset = offset };
	row->stated |= UINT64_C(1) << number;
}

/* Makes @ret of @fre. */
static void make_row(const struct fathom_sframe *s, const struct fre *fre,
		     const struct fathom_unwind_arch *arch, struct fathom_row *ret)
{
	const uint8_t ra = arch->link == FATHOM_NO_REGISTER ? arch->pc : arch->link;
	const uint32_t count = OFFSET_COUNT(fre->info);
	uint32_t next = 1;

	ret->stated = 0;
	ret->return_register = ra;
	ret->is_ra_signed = fre->info & IS_RA_MANGLED;
	ret->cfa = (struct fathom_rule){ .kind = FATHOM_RULE_REGISTER,
					 .number = fre->info & BASE_IS_SP ? arch->sp : arch->fp,
					 .offset = fre->offset[0] };
	for (uint8_t i = 0; i < arch->n; i++)
		if (i != arch->sp && i != arch->fp && i != ra && arch->callee_saved >> i & 1)
			set_rule(ret, i, FATHOM_RULE_UNDEFINED, 0);
	if (s->ra_offset)
		set_rule(ret, ra, FATHOM_RULE_AT_OFFSET, s->ra_offset);
	else if (next < count)
		set_rule(ret, ra, FATHOM_RULE_AT_OFFSET, fre->offset[next++]);
	if (s->fp_offset)
		set_rule(ret, arch->fp, FATHOM_RULE_AT_OFFSET, s->fp_offset);
	else if (next < count)
		set_rule(ret, arch->fp, FATHOM_RULE_AT_OFFSET, fre->offset[next]);
}

fathom_err fathom_sframe_find(const struct fathom_sframe *s, uint64_t svma,
			      const struct fathom_unwind_arch *arch, struct fathom_row *ret)
{
	struct function f;
	struct fathom_cursor c;
	struct fre fre;
	struct fre found = { 0 };
	uint64_t at;
	uint64_t end;
	bool any = false;

	if (!find_function(s, svma, &f))
		return FATHOM_END;
	if ((f.info & START_SIZE_BITS) > 2 || (f.info & IS_MASKED && !f.block) ||
	    f.fres_off > s->fres.size)
		return FATHOM_E_CORRUPT;
	at = svma - f.low;
	end = f.info & IS_MASKED ? f.block : f.size;
	at = f.info & IS_MASKED ? at % f.block : at;
	c = cur_init(bytes_slice(s->fres, f.fres_off, s->fres.size - f.fres_off), s->swap);
	for (uint32_t i = 0; i < f.n_fres; i++) {
		if (!read_fre(&c, f.info & START_SIZE_BITS, &fre))
			return FATHOM_E_CORRUPT;
		if (fre.start > at) {
			end = fre.start < end ? fre.start : end;
			break;
		}
		found = fre;
		any = true;
	}
	if (!any)
		return FATHOM_END;
	make_row(s, &found, arch, ret);
	ret->low = svma - (at - found.start);
	ret->high = svma + (end - at);
	return FATHOM_OK;
}
