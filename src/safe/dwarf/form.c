/* SPDX-License-Identifier: MIT */
#include "safe/dwarf/form.h"

#include "safe/base/limits.h"

/* Forms that are not listed have no fixed size, or are unknown. */
#define V FATHOM_FORM_VARIES
#define A FATHOM_FORM_ADDRESS
#define O FATHOM_FORM_OFFSET
const uint8_t fathom_form_classes[0x2d] = {
	V,
	A,
	V,
	V,
	V,
	2,
	4,
	8, /* 0x00: -, addr, -, block2, block4, data2, data4, data8 */
	V,
	V,
	V,
	1,
	1,
	V,
	O,
	V, /* 0x08: string, block, block1, data1, flag, sdata, strp, udata */
	FATHOM_FORM_REF_ADDR,
	1,
	2,
	4,
	8,
	V,
	V,
	O, /* 0x11: ref1, ref2, ref4, ref8, ref_udata, indirect, sec_offset */
	V,
	0,
	V,
	V,
	4,
	O,
	16,
	O, /* 0x18: exprloc, flag_present, strx, addrx, ref_sup4, strp_sup,
	    * data16, line_strp */
	8,
	0,
	V,
	V,
	8,
	1,
	2,
	3, /* 0x20: ref_sig8, implicit_const, loclistx, rnglistx, ref_sup8,
	    * strx1, strx2, strx3 */
	4,
	1,
	2,
	3,
	4, /* 0x28: strx4, addrx1, addrx2, addrx3, addrx4 */
};
#undef V
#undef A
#undef O

/* Returns the length of a block form, and moves the cursor to its first byte. */
static uint64_t block_length(struct fathom_cursor *c, uint64_t form)
{
	switch (form) {
	case DW_FORM_block1:
		return cur_u8(c);
	case DW_FORM_block2:
		return cur_u16(c);
	case DW_FORM_block4:
		return cur_u32(c);
	default: /* DW_FORM_block, DW_FORM_exprloc */
		return cur_uleb(c);
	}
}

/* Returns the form that DW_FORM_indirect stands for; 0, and a failed cursor, if it never ends. */
static uint64_t direct_form(struct fathom_cursor *c, uint64_t form)
{
	for (int i = 0; form == DW_FORM_indirect && i < FATHOM_MAX_INDIRECT; i++)
		form = cur_uleb(c);
	if (form != DW_FORM_indirect && form != DW_FORM_implicit_const)
		return form;
	cur_fail(c); /* the constant of DW_FORM_implicit_const is in the abbreviation */
	return 0;
}

void fathom_form_skip(struct fathom_cursor *c, uint64_t form, struct fathom_encoding e)
{
	const int size = fathom_form_size(form, e);

	if (size >= 0) {
		cur_skip(c, (uint64_t)size);
		return;
	}
	switch (form) {
	case DW_FORM_udata:
	case DW_FORM_sdata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		cur_skip_leb(c);
		break;
	case DW_FORM_string:
		cur_skip_str(c);
		break;
	case DW_FORM_block1:
	case DW_FORM_block2:
	case DW_FORM_block4:
	case DW_FORM_block:
	case DW_FORM_exprloc:
		cur_skip(c, block_length(c, form));
		break;
	case DW_FORM_indirect:
		form = direct_form(c, form);
		if (cur_ok(c))
			fathom_form_skip(c, form, e);
		break;
	default:
		cur_fail(c);
	}
}

void fathom_form_read(struct fathom_cursor *c, uint64_t form, struct fathom_encoding e,
		      const uint8_t *section, struct fathom_attr *ret)
{
	int size;

	if (form == DW_FORM_indirect)
		form = direct_form(c, form);
	ret->form = (uint32_t)form;
	ret->value = 0;
	size = fathom_form_size(form, e);
	switch (form) {
	case DW_FORM_flag_present:
		ret->value = 1;
		break;
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		ret->value = cur_u24(c);
		break;
	case DW_FORM_sdata:
		ret->value = (uint64_t)cur_sleb(c);
		break;
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		ret->value = cur_uleb(c);
		break;
	case DW_FORM_string:
	case DW_FORM_data16:
		ret->value = (uint64_t)(c->p - section);
		fathom_form_skip(c, form, e);
		break;
	case DW_FORM_block1:
	case DW_FORM_block2:
	case DW_FORM_block4:
	case DW_FORM_block:
	case DW_FORM_exprloc: {
		const uint64_t length = block_length(c, form);

		ret->value = (uint64_t)(c->p - section);
		cur_skip(c, length);
		break;
	}
	default:
		if (size > 0)
			ret->value = cur_uint(c, (unsigned)size);
		else
			cur_fail(c);
	}
}
