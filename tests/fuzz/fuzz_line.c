/* SPDX-License-Identifier: MIT */
/* .debug_line: header, tables of files, program. */
#include "fuzz.h"

#include <stdlib.h>

#include "safe/dwarf/line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = fuzz_init(data, size);
	const uint8_t flags = fuzz_byte(&f);
	struct fathom_dwarf dwarf = { .swap = flags & 1, .serial = 1 };
	struct fathom_unit unit = { .dwarf = &dwarf, .skeleton = &dwarf };
	struct fathom_line_program p;
	struct fathom_line_tables tables;
	struct fathom_line_entry entry;
	struct fathom_line_reader reader = { 0 };
	struct fathom_line_row rows[16];
	struct fathom_cursor c;
	size_t n;

	dwarf.section[FATHOM_DEBUG_STR] = fuzz_section(&f);
	dwarf.section[FATHOM_DEBUG_LINE_STR] = fuzz_section(&f);
	dwarf.section[FATHOM_DEBUG_LINE] = fuzz_rest(&f);
	if (fathom_line_program_read(&dwarf, 0, flags & 2 ? 4 : 8, &p, NULL))
		return 0;
	fathom_line_tables_init(&tables, &p);
	for (int i = 0; i < 1000 && !fathom_line_tables_next(&tables, &entry, NULL); i++) {
		fuzz_use_str(fathom_line_entry_name(&p, &unit, &entry));
		fuzz_use_str(fathom_line_tables_source(&tables, &unit));
	}
	fathom_line_reader_init(&reader, &p);
	while ((n = fathom_line_reader_rows(&reader, rows, 16)) != 0) {
		if (n > 16)
			abort();
		reader.dull = flags & 4 ? rows[n - 1].address : 0;
	}
	fuzz_use((uint64_t)fathom_line_reader_error(&reader, NULL));
	c = p.opcodes;
	while (fathom_line_next_defined(&p, &c, &entry))
		fuzz_use_str(fathom_line_entry_name(&p, &unit, &entry));
	return 0;
}
