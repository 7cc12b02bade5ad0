/* SPDX-License-Identifier: MIT */
/*
 * Shared by the readers of DWARF: constants (DWARF 5, chapter 7, and the GNU extensions of DWARF
 * 4), and the set of sections that refer to each other.
 *
 * Readers here are pull iterators over byte ranges with fixed state: they never open, allocate or
 * decompress. Offsets into a section are uint64_t and named for it (die_off, abbrev_off).
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_DWARF_DWARF_H
#define FATHOM_DWARF_DWARF_H

#include "safe/base/bytes.h"
#include "safe/base/error.h"

enum {
	DW_TAG_array_type = 0x01,
	DW_TAG_class_type = 0x02,
	DW_TAG_entry_point = 0x03,
	DW_TAG_enumeration_type = 0x04,
	DW_TAG_lexical_block = 0x0b,
	DW_TAG_compile_unit = 0x11,
	DW_TAG_structure_type = 0x13,
	DW_TAG_union_type = 0x17,
	DW_TAG_inlined_subroutine = 0x1d,
	DW_TAG_module = 0x1e,
	DW_TAG_with_stmt = 0x22,
	DW_TAG_catch_block = 0x25,
	DW_TAG_subprogram = 0x2e,
	DW_TAG_try_block = 0x32,
	DW_TAG_variable = 0x34,
	DW_TAG_interface_type = 0x38,
	DW_TAG_namespace = 0x39,
	DW_TAG_partial_unit = 0x3c,
	DW_TAG_type_unit = 0x41,
	DW_TAG_skeleton_unit = 0x4a,
};

enum {
	DW_AT_sibling = 0x01,
	DW_AT_location = 0x02,
	DW_AT_name = 0x03,
	DW_AT_stmt_list = 0x10,
	DW_AT_low_pc = 0x11,
	DW_AT_high_pc = 0x12,
	DW_AT_language = 0x13,
	DW_AT_comp_dir = 0x1b,
	DW_AT_abstract_origin = 0x31,
	DW_AT_decl_file = 0x3a,
	DW_AT_decl_line = 0x3b,
	DW_AT_specification = 0x47,
	DW_AT_entry_pc = 0x52,
	DW_AT_ranges = 0x55,
	DW_AT_call_column = 0x57,
	DW_AT_call_file = 0x58,
	DW_AT_call_line = 0x59,
	DW_AT_linkage_name = 0x6e,
	DW_AT_str_offsets_base = 0x72,
	DW_AT_addr_base = 0x73,
	DW_AT_rnglists_base = 0x74,
	DW_AT_dwo_name = 0x76,
	DW_AT_MIPS_linkage_name = 0x2007,
	DW_AT_GNU_dwo_name = 0x2130,
	DW_AT_GNU_dwo_id = 0x2131,
	DW_AT_GNU_ranges_base = 0x2132,
	DW_AT_GNU_addr_base = 0x2133,
	DW_AT_GNU_discriminator = 0x2136,
};

enum {
	DW_FORM_addr = 0x01,
	DW_FORM_block2 = 0x03,
	DW_FORM_block4 = 0x04,
	DW_FORM_data2 = 0x05,
	DW_FORM_data4 = 0x06,
	DW_FORM_data8 = 0x07,
	DW_FORM_string = 0x08,
	DW_FORM_block = 0x09,
	DW_FORM_block1 = 0x0a,
	DW_FORM_data1 = 0x0b,
	DW_FORM_flag = 0x0c,
	DW_FORM_sdata = 0x0d,
	DW_FORM_strp = 0x0e,
	DW_FORM_udata = 0x0f,
	DW_FORM_ref_addr = 0x10,
	DW_FORM_ref1 = 0x11,
	DW_FORM_ref2 = 0x12,
	DW_FORM_ref4 = 0x13,
	DW_FORM_ref8 = 0x14,
	DW_FORM_ref_udata = 0x15,
	DW_FORM_indirect = 0x16,
	DW_FORM_sec_offset = 0x17,
	DW_FORM_exprloc = 0x18,
	DW_FORM_flag_present = 0x19,
	DW_FORM_strx = 0x1a,
	DW_FORM_addrx = 0x1b,
	DW_FORM_ref_sup4 = 0x1c,
	DW_FORM_strp_sup = 0x1d,
	DW_FORM_data16 = 0x1e,
	DW_FORM_line_strp = 0x1f,
	DW_FORM_ref_sig8 = 0x20,
	DW_FORM_implicit_const = 0x21,
	DW_FORM_loclistx = 0x22,
	DW_FORM_rnglistx = 0x23,
	DW_FORM_ref_sup8 = 0x24,
	DW_FORM_strx1 = 0x25,
	DW_FORM_strx2 = 0x26,
	DW_FORM_strx3 = 0x27,
	DW_FORM_strx4 = 0x28,
	DW_FORM_addrx1 = 0x29,
	DW_FORM_addrx2 = 0x2a,
	DW_FORM_addrx3 = 0x2b,
	DW_FORM_addrx4 = 0x2c,
	DW_FORM_GNU_addr_index = 0x1f01,
	DW_FORM_GNU_str_index = 0x1f02,
	DW_FORM_GNU_ref_alt = 0x1f20,
	DW_FORM_GNU_strp_alt = 0x1f21,
};

enum {
	DW_OP_addr = 0x03,
	DW_OP_deref = 0x06,
	DW_OP_const1u = 0x08,
	DW_OP_const1s = 0x09,
	DW_OP_const2u = 0x0a,
	DW_OP_const2s = 0x0b,
	DW_OP_const4u = 0x0c,
	DW_OP_const4s = 0x0d,
	DW_OP_const8u = 0x0e,
	DW_OP_const8s = 0x0f,
	DW_OP_constu = 0x10,
	DW_OP_consts = 0x11,
	DW_OP_dup = 0x12,
	DW_OP_drop = 0x13,
	DW_OP_over = 0x14,
	DW_OP_pick = 0x15,
	DW_OP_swap = 0x16,
	DW_OP_rot = 0x17,
	DW_OP_abs = 0x19,
	DW_OP_and = 0x1a,
	DW_OP_div = 0x1b,
	DW_OP_minus = 0x1c,
	DW_OP_mod = 0x1d,
	DW_OP_mul = 0x1e,
	DW_OP_neg = 0x1f,
	DW_OP_not = 0x20,
	DW_OP_or = 0x21,
	DW_OP_plus = 0x22,
	DW_OP_plus_uconst = 0x23,
	DW_OP_shl = 0x24,
	DW_OP_shr = 0x25,
	DW_OP_shra = 0x26,
	DW_OP_xor = 0x27,
	DW_OP_bra = 0x28,
	DW_OP_eq = 0x29,
	DW_OP_ge = 0x2a,
	DW_OP_gt = 0x2b,
	DW_OP_le = 0x2c,
	DW_OP_lt = 0x2d,
	DW_OP_ne = 0x2e,
	DW_OP_skip = 0x2f,
	DW_OP_lit0 = 0x30,
	DW_OP_lit31 = 0x4f,
	DW_OP_breg0 = 0x70,
	DW_OP_breg31 = 0x8f,
	DW_OP_bregx = 0x92,
	DW_OP_deref_size = 0x94,
	DW_OP_nop = 0x96,
	DW_OP_addrx = 0xa1,
	DW_OP_GNU_addr_index = 0xfb,
};

enum {
	DW_UT_compile = 0x01,
	DW_UT_type = 0x02,
	DW_UT_partial = 0x03,
	DW_UT_skeleton = 0x04,
	DW_UT_split_compile = 0x05,
	DW_UT_split_type = 0x06,
};

enum {
	DW_RLE_end_of_list = 0x00,
	DW_RLE_base_addressx = 0x01,
	DW_RLE_startx_endx = 0x02,
	DW_RLE_startx_length = 0x03,
	DW_RLE_offset_pair = 0x04,
	DW_RLE_base_address = 0x05,
	DW_RLE_start_end = 0x06,
	DW_RLE_start_length = 0x07,
};

enum {
	DW_LNS_extended_op = 0x00,
	DW_LNS_copy = 0x01,
	DW_LNS_advance_pc = 0x02,
	DW_LNS_advance_line = 0x03,
	DW_LNS_set_file = 0x04,
	DW_LNS_set_column = 0x05,
	DW_LNS_negate_stmt = 0x06,
	DW_LNS_set_basic_block = 0x07,
	DW_LNS_const_add_pc = 0x08,
	DW_LNS_fixed_advance_pc = 0x09,
	DW_LNS_set_prologue_end = 0x0a,
	DW_LNS_set_epilogue_begin = 0x0b,
	DW_LNS_set_isa = 0x0c,

	DW_LNE_end_sequence = 0x01,
	DW_LNE_set_address = 0x02,
	DW_LNE_define_file = 0x03,
	DW_LNE_set_discriminator = 0x04,

	DW_LNCT_path = 0x1,
	DW_LNCT_directory_index = 0x2,
	DW_LNCT_MD5 = 0x5,
	DW_LNCT_LLVM_source = 0x2001,
};

enum {
	DW_LANG_C89 = 0x0001,
	DW_LANG_C = 0x0002,
	DW_LANG_Ada83 = 0x0003,
	DW_LANG_C_plus_plus = 0x0004,
	DW_LANG_C99 = 0x000c,
	DW_LANG_Ada95 = 0x000d,
	DW_LANG_Go = 0x0016,
	DW_LANG_C_plus_plus_03 = 0x0019,
	DW_LANG_C_plus_plus_11 = 0x001a,
	DW_LANG_Rust = 0x001c,
	DW_LANG_C11 = 0x001d,
	DW_LANG_C_plus_plus_14 = 0x0021,
	DW_LANG_C_plus_plus_17 = 0x002a,
	DW_LANG_C_plus_plus_20 = 0x002b,
	DW_LANG_C17 = 0x002c,
	DW_LANG_Ada2005 = 0x002e,
	DW_LANG_Ada2012 = 0x002f,
	DW_LANG_Mips_Assembler = 0x8001,
};

/* The sections of one DWARF file, in the order in which errors and tests list them. */
enum fathom_dwarf_section {
	FATHOM_DEBUG_INFO,
	FATHOM_DEBUG_ABBREV,
	FATHOM_DEBUG_LINE,
	FATHOM_DEBUG_STR,
	FATHOM_DEBUG_LINE_STR,
	FATHOM_DEBUG_STR_OFFSETS,
	FATHOM_DEBUG_ADDR,
	FATHOM_DEBUG_RANGES,
	FATHOM_DEBUG_RNGLISTS,
	FATHOM_DEBUG_ARANGES,
	FATHOM_DEBUG_NAMES,
	FATHOM_GDB_INDEX,
	FATHOM_DEBUG_CU_INDEX, /* package files (.dwp) only */
	FATHOM_DWARF_SECTIONS
};

/* Returns the section's name without dot and without ".dwo", such as "debug_info". */
const char *fathom_dwarf_section_name(enum fathom_dwarf_section section);

/* Views of the sections of one file; absent ones are empty. */
struct fathom_dwarf {
	struct fathom_bytes section[FATHOM_DWARF_SECTIONS];
	const struct fathom_dwarf *sup; /* the supplementary (dwz) file, or NULL */
	uint64_t serial; /* unique among views of the session: a key for what is kept by view */
	uint64_t bias;   /* see fathom_dwarf_address(); not 0 if prelink has moved the program */
	bool swap;
};

/*
 * Returns the program's address for @address of its debug information: prelink moves libraries but
 * not their debug files. 0 and 1 are tombstones and stay.
 */
static inline uint64_t fathom_dwarf_address(const struct fathom_dwarf *d, uint64_t address)
{
	return address > 1 ? address + d->bias : address;
}

#endif
