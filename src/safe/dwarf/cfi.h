/* SPDX-License-Identifier: MIT */
/*
 * Call frame information: .eh_frame, .eh_frame_hdr (LSB 5.0, 10.6) and .debug_frame (DWARF 5, 6.4).
 *
 * A pull iterator over one section: it keeps nothing, and its state has a fixed size. Reads 32- and
 * 64-bit DWARF, CIE versions 1, 3 and 4, all pointer encodings, and the augmentation letters of
 * GCC, LLVM and aarch64. Not handled: the instructions, of which only the bytes are returned.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_DWARF_CFI_H
#define FATHOM_DWARF_CFI_H

#include "safe/base/cursor.h"
#include "safe/dwarf/dwarf.h"

/* Pointer encodings (LSB 5.0, 10.5.1): a format, a base and a flag. */
enum {
	DW_EH_PE_absptr = 0x00,
	DW_EH_PE_uleb128 = 0x01,
	DW_EH_PE_udata2 = 0x02,
	DW_EH_PE_udata4 = 0x03,
	DW_EH_PE_udata8 = 0x04,
	DW_EH_PE_signed = 0x08,
	DW_EH_PE_sleb128 = 0x09,
	DW_EH_PE_sdata2 = 0x0a,
	DW_EH_PE_sdata4 = 0x0b,
	DW_EH_PE_sdata8 = 0x0c,
	DW_EH_PE_pcrel = 0x10,
	DW_EH_PE_textrel = 0x20,
	DW_EH_PE_datarel = 0x30,
	DW_EH_PE_funcrel = 0x40,
	DW_EH_PE_aligned = 0x50,
	DW_EH_PE_indirect = 0x80,
	DW_EH_PE_omit = 0xff,
};

/* One section of call frame information. Addresses are svma. */
struct fathom_cfi {
	struct fathom_bytes section;
	uint64_t svma;      /* of the section's first byte, for DW_EH_PE_pcrel */
	uint64_t text_svma; /* of .text, for DW_EH_PE_textrel; 0 if unknown */
	uint64_t data_svma; /* of .got, for DW_EH_PE_datarel; 0 if unknown */
	uint8_t address_size;
	bool is_eh;   /* .eh_frame, not .debug_frame */
	bool is_open; /* the section's size is unknown: its first terminator ends it */
	bool swap;
};

/* A common information entry. Strings and instructions are borrowed from the section. */
struct fathom_cie {
	struct fathom_cfi cfi; /* the section, with the address size of this CIE */
	uint64_t off;          /* in the section */
	uint64_t code_alignment;
	int64_t data_alignment;
	uint64_t return_register;
	/* svma of the routine or, with DW_EH_PE_indirect, of a pointer to it */
	uint64_t personality;
	struct fathom_str augmentation;
	struct fathom_bytes instructions; /* the initial ones */
	uint8_t version;
	uint8_t segment_size;
	uint8_t pointer_encoding;     /* of the bounds of FDEs */
	uint8_t lsda_encoding;        /* DW_EH_PE_omit: no FDE has an LSDA */
	uint8_t personality_encoding; /* DW_EH_PE_omit: there is no personality routine */
	bool has_data;                /* 'z': FDEs state the size of their augmentation data */
	bool is_signal_frame;         /* 'S': the caller's pc is exact */
	bool uses_b_key;              /* 'B': return addresses are signed with aarch64's key B */
	bool has_tagged_stack;        /* 'G': the frame has memory tags (aarch64's MTE) */
	bool is_unknown; /* the augmentation was read up to a letter or a base that is unknown */
};

/* A frame description entry: how to unwind one range of code. */
struct fathom_fde {
	const struct fathom_cie *cie;
	uint64_t off; /* in the section */
	uint64_t low;
	uint64_t high;
	uint64_t lsda; /* svma of it or, with DW_EH_PE_indirect, of a pointer to it */
	struct fathom_bytes instructions;
	bool has_lsda;
	bool is_damaged; /* the augmentation data cannot be read: only the bounds are known */
};

/* The head of a CIE or FDE. */
struct fathom_cfi_entry {
	uint64_t off;     /* in the section */
	uint64_t cie_off; /* of an FDE's CIE, or of the CIE itself */
	struct fathom_cursor body;
	bool is_cie;
};

/* A walk over all entries. */
struct fathom_cfi_reader {
	const struct fathom_cfi *cfi;
	struct fathom_cursor c;
};

void fathom_cfi_reader_init(struct fathom_cfi_reader *r, const struct fathom_cfi *cfi);

/* Reads the next entry: FATHOM_OK, FATHOM_END, or an error. Skips terminators before the end. */
fathom_err fathom_cfi_next(struct fathom_cfi_reader *r, struct fathom_cfi_entry *ret,
			   struct fathom_errinfo *reterr);

/* Reads the entry at @off: FATHOM_OK, FATHOM_END if it is a terminator, or an error. */
fathom_err fathom_cfi_at(const struct fathom_cfi *cfi, uint64_t off, struct fathom_cfi_entry *ret);

/*
 * Reads the CIE at @off. Returns FATHOM_E_UNSUPPORTED if its version, its address or segment size,
 * or the encoding of its FDEs' bounds is unknown: its FDEs cannot be read then. Other errors are
 * damage.
 */
fathom_err fathom_cie_read(const struct fathom_cfi *cfi, uint64_t off, struct fathom_cie *ret);

/* Reads the FDE @e, whose CIE is @cie. An FDE without code has a low that is not below its high. */
fathom_err fathom_fde_read(const struct fathom_cfi_entry *e, const struct fathom_cie *cie,
			   struct fathom_fde *ret);

/*
 * Reads the svma of .eh_frame from the head of @header (.eh_frame_hdr at @header_svma). @cfi is of
 * the same file; only its sizes and bases are used. Returns an error if it is unknown.
 */
fathom_err fathom_cfi_section(const struct fathom_cfi *cfi, struct fathom_bytes header,
			      uint64_t header_svma, uint64_t *ret_svma);

/*
 * Reads an address as the bounds of FDEs are encoded, at @c in the section of @cie, as
 * DW_CFA_set_loc has one. FATHOM_E_CORRUPT if it is cut off.
 */
fathom_err fathom_cie_pointer(const struct fathom_cie *cie, struct fathom_cursor *c,
			      uint64_t *ret_svma);

/*
 * Where the sorted table of an .eh_frame_hdr is. Its rows are two words (fathom_cfi_table_word()).
 */
struct fathom_cfi_table {
	uint64_t off;   /* in the header */
	uint64_t count; /* rows */
};

/*
 * Finds the sorted table after the head of @header (.eh_frame_hdr at @header_svma), of which
 * FATHOM_CFI_HEAD bytes are enough. FATHOM_E_UNSUPPORTED if there is none, or one of another kind
 * than all linkers write.
 */
fathom_err fathom_cfi_find_table(const struct fathom_cfi *cfi, struct fathom_bytes header,
				 uint64_t header_svma, struct fathom_cfi_table *ret);

/* Bytes of the longest head of an .eh_frame_hdr: four encodings, an address, a number. */
#define FATHOM_CFI_HEAD 20

/* Bytes of a row of the sorted table: where a function starts, and where its FDE is. */
#define FATHOM_CFI_TABLE_ROW 8

/* Returns the svma in word @i of @table, of the header at @header_svma. */
uint64_t fathom_cfi_table_word(const struct fathom_cfi *cfi, const uint8_t *table,
			       uint64_t header_svma, uint64_t i);

/*
 * Searches the sorted table of @header (.eh_frame_hdr at @header_svma) for @pc. Returns the offset
 * of the FDE that starts last at or before @pc; FATHOM_END if none does; or an error if there is no
 * table, if it is not of the kind that all linkers write, or if it is another section's.
 */
fathom_err fathom_cfi_search(const struct fathom_cfi *cfi, struct fathom_bytes header,
			     uint64_t header_svma, uint64_t pc, uint64_t *ret_off);

#endif
