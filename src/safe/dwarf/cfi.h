/* SPDX-License-Identifier: MIT */
/*
 * Call frame information: .eh_frame, .eh_frame_hdr (LSB 5.0, 10.6) and .debug_frame (DWARF 5, 6.4).
 *
 * So far only which range of code each description (FDE) covers: where symbols are stripped, these
 * are the true bounds of functions. The rules themselves are not read yet.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_DWARF_CFI_H
#define FATHOM_DWARF_CFI_H

#include "safe/base/cursor.h"
#include "safe/dwarf/dwarf.h"

/* One section of descriptions. Addresses are svma. */
struct fathom_cfi {
	struct fathom_bytes section;
	uint64_t svma;      /* of its first byte, for pc-relative pointers */
	uint64_t text_svma; /* of .text, for DW_EH_PE_textrel; 0 when unknown */
	uint64_t data_svma; /* of .got, for DW_EH_PE_datarel; 0 when unknown */
	uint8_t address_size;
	bool is_eh; /* .eh_frame, not .debug_frame */
	bool swap;
};

struct fathom_fde {
	uint64_t low;
	uint64_t high;
	uint64_t off; /* of the description in its section */
};

/* A walk over all descriptions. */
struct fathom_fde_reader {
	const struct fathom_cfi *cfi;
	struct fathom_cursor c;
};

void fathom_fde_reader_init(struct fathom_fde_reader *r, const struct fathom_cfi *cfi);

/* The next description that covers code: FATHOM_OK, FATHOM_END, or an error. */
fathom_err fathom_fde_next(struct fathom_fde_reader *r, struct fathom_fde *ret,
			   struct fathom_errinfo *reterr);

/*
 * The description that covers @pc by the sorted table of @header (.eh_frame_hdr at @header_svma):
 * FATHOM_OK, FATHOM_END when none does, or an error when there is no table, or not of the kind that
 * all linkers write: then only a walk can tell.
 */
fathom_err fathom_fde_find(const struct fathom_cfi *cfi, struct fathom_bytes header,
			   uint64_t header_svma, uint64_t pc, struct fathom_fde *ret);

#endif
