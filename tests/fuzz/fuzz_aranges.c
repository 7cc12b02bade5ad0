/* SPDX-License-Identifier: MIT */
/* The indexes that lead to units: .debug_aranges, .gdb_index, .debug_names. */
#include "fuzz.h"

#include "safe/dwarf/aranges.h"
#include "safe/dwarf/gdb_index.h"
#include "safe/dwarf/names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = fuzz_init(data, size);
	struct fathom_dwarf dwarf = { .swap = fuzz_byte(&f) & 1, .serial = 1 };
	const struct fathom_bytes name = fuzz_section(&f);
	struct fathom_names_search names;
	struct fathom_gdb_index index;
	struct fathom_aranges aranges;
	uint64_t low;
	uint64_t length;
	uint64_t unit;

	dwarf.section[FATHOM_DEBUG_STR] = fuzz_section(&f);
	dwarf.section[FATHOM_DEBUG_ARANGES] = fuzz_rest(&f);
	dwarf.section[FATHOM_GDB_INDEX] = dwarf.section[FATHOM_DEBUG_ARANGES];
	dwarf.section[FATHOM_DEBUG_NAMES] = dwarf.section[FATHOM_DEBUG_ARANGES];
	fathom_aranges_init(&aranges, &dwarf);
	while (!fathom_aranges_next(&aranges, &low, &length, &unit, NULL))
		fuzz_use(low ^ length ^ unit);
	if (!fathom_gdb_index_init(&index, &dwarf, NULL))
		while (!fathom_gdb_index_next(&index, &low, &length, &unit, NULL))
			fuzz_use(low ^ length ^ unit);
	fathom_names_init(&names, &dwarf,
			  (struct fathom_str){ (const char *)name.data, (uint32_t)name.size });
	while (!fathom_names_next(&names, &unit, NULL))
		fuzz_use(unit);
	return 0;
}
