/* SPDX-License-Identifier: MIT */
/* .eh_frame, .eh_frame_hdr and .debug_frame. */
#include "fuzz.h"

#include "safe/dwarf/cfi.h"

#define HEADER_SVMA 0x800

static void use_bytes(struct fathom_bytes b)
{
	for (uint64_t i = 0; i < b.size; i++)
		fuzz_use(b.data[i]);
}

static void use_entry(const struct fathom_cfi *cfi, const struct fathom_cfi_entry *e)
{
	struct fathom_cie cie;
	struct fathom_fde fde;

	if (fathom_cie_read(cfi, e->cie_off, &cie))
		return;
	if (e->is_cie) {
		fuzz_use_str(cie.augmentation);
		fuzz_use(cie.personality ^ cie.return_register ^ cie.code_alignment);
		use_bytes(cie.instructions);
	} else if (!fathom_fde_read(e, &cie, &fde)) {
		fuzz_use(fde.low ^ fde.high ^ fde.lsda);
		use_bytes(fde.instructions);
	}
}

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
		.is_open = flags & 8,
		.swap = flags & 1,
	};
	const uint64_t pc = fuzz_number(&f);
	const struct fathom_bytes header = fuzz_section(&f);
	struct fathom_cfi_reader reader;
	struct fathom_cfi_entry e;
	uint64_t off;

	cfi.section = fuzz_rest(&f);
	/* The header must lead to the section: else nothing behind it is read. */
	if (header.size >= 8 && header.data[1] == (DW_EH_PE_pcrel | DW_EH_PE_sdata4))
		cfi.svma = HEADER_SVMA + 4 + (uint64_t)(int32_t)load_u32(header.data + 4, cfi.swap);
	fathom_cfi_reader_init(&reader, &cfi);
	while (!fathom_cfi_next(&reader, &e, NULL))
		use_entry(&cfi, &e);
	if (!fathom_cfi_search(&cfi, header, HEADER_SVMA, pc, &off) &&
	    !fathom_cfi_at(&cfi, off, &e))
		use_entry(&cfi, &e);
	return 0;
}
