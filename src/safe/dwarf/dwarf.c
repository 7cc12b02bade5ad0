/* SPDX-License-Identifier: MIT */
#include "safe/dwarf/dwarf.h"

const char *fathom_dwarf_section_name(enum fathom_dwarf_section section)
{
	static const char *const names[FATHOM_DWARF_SECTIONS] = {
		[FATHOM_DEBUG_INFO] = "debug_info",
		[FATHOM_DEBUG_ABBREV] = "debug_abbrev",
		[FATHOM_DEBUG_LINE] = "debug_line",
		[FATHOM_DEBUG_STR] = "debug_str",
		[FATHOM_DEBUG_LINE_STR] = "debug_line_str",
		[FATHOM_DEBUG_STR_OFFSETS] = "debug_str_offsets",
		[FATHOM_DEBUG_ADDR] = "debug_addr",
		[FATHOM_DEBUG_RANGES] = "debug_ranges",
		[FATHOM_DEBUG_RNGLISTS] = "debug_rnglists",
		[FATHOM_DEBUG_ARANGES] = "debug_aranges",
		[FATHOM_DEBUG_NAMES] = "debug_names",
		[FATHOM_GDB_INDEX] = "gdb_index",
		[FATHOM_DEBUG_CU_INDEX] = "debug_cu_index",
	};

	return names[section];
}
