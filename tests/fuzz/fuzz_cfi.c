/* SPDX-License-Identifier: MIT */
/* .eh_frame, .eh_frame_hdr and .debug_frame. */
#include "fuzz.h"

#include "safe/dwarf/cfi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = fuzz_init(data, size);
	const uint8_t flags = fuzz_byte(&f);
	struct fathom_cfi cfi = {
		.svma = 0x1000,
		.text_svma = 0x2000,
		.data_svma = 0x3000,
		.address_size = flags & 2 ? 4 : 8,
		.is_eh = flags & 4,
		.swap = flags & 1,
	};
	const uint64_t pc = fuzz_number(&f);
	const struct fathom_bytes header = fuzz_section(&f);
	struct fathom_fde_reader reader;
	struct fathom_fde fde;

	cfi.section = fuzz_rest(&f);
	fathom_fde_reader_init(&reader, &cfi);
	while (!fathom_fde_next(&reader, &fde, NULL))
		fuzz_use(fde.low ^ fde.high);
	if (!fathom_fde_find(&cfi, header, 0x800, pc, &fde))
		fuzz_use(fde.off);
	return 0;
}
