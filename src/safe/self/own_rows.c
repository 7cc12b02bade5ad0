/* SPDX-License-Identifier: MIT */
#include "safe/self/own_rows.h"

#include "safe/base/limits.h"
#include "safe/base/peek.h"
#include "safe/base/sort.h"
#include "safe/self/loader.h"
#include "safe/unwind/row.h"

/* Rows of a table that are read at once, when the search has come so near. */
#define NEAR 32

/* One CIE and one FDE, as they stand in memory. */
struct copies {
	uint8_t cie[FATHOM_MAX_OWN_CIE];
	uint8_t fde[FATHOM_MAX_OWN_FDE];
	bool is_cut; /* the FDE is longer */
};

/* Returns an .eh_frame of which @bytes, at @avma, are known. */
static struct fathom_cfi section_of(const uint8_t *bytes, size_t size, uintptr_t avma)
{
	return (struct fathom_cfi){ .section = { bytes, size },
				    .svma = avma,
				    .address_size = sizeof(uintptr_t),
				    .is_eh = true };
}

/* Reads the word of function or FDE (@which) of row @row of the table at @table. */
static bool read_word(const struct fathom_cfi *cfi, uintptr_t header, uint64_t table, uint64_t row,
		      unsigned which, uint64_t *ret)
{
	uint8_t bytes[4];

	if (fathom_peek(table + row * FATHOM_CFI_TABLE_ROW + which * sizeof bytes, bytes,
			sizeof bytes) != sizeof bytes)
		return false;
	*ret = fathom_cfi_table_word(cfi, bytes, header, 0);
	return true;
}

/* Searches the .eh_frame_hdr at @header; returns the avma of the FDE that may cover @avma. */
static bool find_fde(uintptr_t header, uintptr_t avma, uint64_t *ret)
{
	uint8_t near[NEAR * FATHOM_CFI_TABLE_ROW];
	const size_t size = fathom_peek(header, near, FATHOM_CFI_HEAD);
	const struct fathom_cfi cfi = section_of(near, size, header);
	struct fathom_cfi_table t;
	uint64_t low = 0; /* rows before it start at or before @avma */
	uint64_t high;
	uint64_t word;
	size_t n;

	if (fathom_cfi_find_table(&cfi, cfi.section, header, &t) || t.count > FATHOM_MAX_TABLE_ROWS)
		return false;
	high = t.count;
	while (high - low > NEAR) {
		const uint64_t middle = low + (high - low) / 2;

		if (!read_word(&cfi, header, header + t.off, middle, 0, &word))
			return false;
		if (word <= avma)
			low = middle + 1;
		else
			high = middle;
	}
	n = (size_t)(high - low);
	if (fathom_peek(header + t.off + low * FATHOM_CFI_TABLE_ROW, near,
			n * FATHOM_CFI_TABLE_ROW) != n * FATHOM_CFI_TABLE_ROW)
		return false;
	low += FATHOM_BISECT(n, i, fathom_cfi_table_word(&cfi, near, header, 2 * i) <= avma);
	return low && read_word(&cfi, header, header + t.off, low - 1, 1, ret);
}

/*
 * Copies the entry at @avma, which begins with its size. What does not fit is cut off, and the size
 * made to be that of the copy. Returns that; 0 if there is no entry.
 */
static size_t copy_entry(uint64_t avma, uint8_t *to, size_t cap, bool *ret_is_cut)
{
	uint32_t length;
	size_t size;

	if (fathom_peek(avma, &length, sizeof length) != sizeof length || length < 4 ||
	    length >= 0xfffffff0)
		return 0;
	*ret_is_cut = length > cap - sizeof length;
	size = *ret_is_cut ? cap : length + sizeof length;
	if (fathom_peek(avma, to, size) != size)
		return 0;
	length = (uint32_t)(size - sizeof length);
	memcpy(to, &length, sizeof length);
	return size;
}

/* Reads the FDE at @avma and its CIE. */
static bool read_fde(uint64_t avma, struct copies *copies, struct fathom_cie *cie,
		     struct fathom_fde *ret)
{
	size_t size = copy_entry(avma, copies->fde, sizeof copies->fde, &copies->is_cut);
	const struct fathom_cfi of_fde = section_of(copies->fde, size, (uintptr_t)avma);
	struct fathom_cfi of_cie;
	struct fathom_cfi_entry e;
	uint64_t at = 0;
	bool is_cut = false;

	if (!size || fathom_cfi_at(&of_fde, 0, &e) || e.is_cie)
		return false;
	/* An offset from the FDE, which is usually negative. */
	at = avma + e.cie_off;
	size = copy_entry(at, copies->cie, sizeof copies->cie, &is_cut);
	of_cie = section_of(copies->cie, size, (uintptr_t)at);
	if (!size || is_cut || fathom_cie_read(&of_cie, 0, cie))
		return false;
	/* The FDE's addresses count from where it is. */
	cie->cfi = of_fde;
	return !fathom_fde_read(&e, cie, ret);
}

enum fathom_stop fathom_own_step_row(uintptr_t avma, const struct fathom_unwind_arch *arch,
				     const struct fathom_step_memory *m, struct fathom_registers *r,
				     bool *ret_is_signal)
{
	struct fathom_row_reader reader;
	struct fathom_self_object o;
	struct fathom_self_object now;
	struct copies copies;
	struct fathom_cie cie;
	struct fathom_fde fde;
	enum fathom_stop stop;
	uint64_t at = 0;

	*ret_is_signal = false;
	if (!fathom_self_object_at(avma, &o) || !o.header || !find_fde(o.header, avma, &at) ||
	    !read_fde(at, &copies, &cie, &fde) || avma < fde.low || avma >= fde.high ||
	    fathom_row_reader_init(&reader, &fde, arch) || fathom_row_find(&reader, avma))
		return FATHOM_STOP_NO_RULE;
	/* The last row that is known may end earlier than it seems. */
	if (copies.is_cut && reader.now.high == fde.high)
		return FATHOM_STOP_NO_RULE;
	stop = fathom_step_row(&reader.now, 0, arch, m, r);
	/* Nothing is believed that was read while the module changed. */
	if (!fathom_self_object_at(avma, &now) || now.start != o.start || now.end != o.end ||
	    now.link_map != o.link_map || now.header != o.header)
		return FATHOM_STOP_NO_RULE;
	*ret_is_signal = cie.is_signal_frame;
	return stop;
}

bool fathom_own_fde_bounds(uintptr_t avma, uintptr_t *ret_low, uintptr_t *ret_high)
{
	struct fathom_self_object o;
	struct copies copies;
	struct fathom_cie cie;
	struct fathom_fde fde;
	uint64_t at = 0;

	if (!fathom_self_object_at(avma, &o) || !o.header || !find_fde(o.header, avma, &at) ||
	    !read_fde(at, &copies, &cie, &fde) || avma < fde.low || avma >= fde.high)
		return false;
	*ret_low = (uintptr_t)fde.low;
	*ret_high = (uintptr_t)fde.high;
	return true;
}
