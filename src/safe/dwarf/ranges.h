/* SPDX-License-Identifier: MIT */
/*
 * Range lists: .debug_ranges (DWARF 4, 2.17.3) and .debug_rnglists (DWARF 5, 7.25), and the plain
 * DW_AT_low_pc / DW_AT_high_pc pair, all as one iterator.
 *
 * Linkers mark dropped code with a tombstone, an address that no code can have: 0, 1, the largest
 * or the one below it. A range list whose base is a large tombstone yields nothing. Ranges that
 * start at 0 or 1 are yielded: the caller knows where the file has code.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_DWARF_RANGES_H
#define FATHOM_DWARF_RANGES_H

#include "safe/dwarf/unit.h"

struct fathom_ranges {
	const struct fathom_unit *unit;
	struct fathom_cursor c;
	const uint8_t *section;
	uint64_t base;
	uint64_t low; /* the single range of a low_pc / high_pc pair */
	uint64_t high;
	uint64_t *left; /* list entries that may still be read */
	uint8_t form;   /* kind of list; see ranges.c */
};

/*
 * Returns how many list entries one walk over the entries of @dwarf may read. The lists of version
 * 4 are in @skeleton. Compilers let a few entries share a list; without this bound, lists that
 * thousands share would multiply.
 */
uint64_t fathom_ranges_allowed(const struct fathom_dwarf *dwarf,
			       const struct fathom_dwarf *skeleton);

/*
 * Prepares the ranges of @die: DW_AT_ranges if present, else low_pc and high_pc. Returns false if
 * @die has no code; low_pc alone is none. Each list entry read is taken from @left.
 */
bool fathom_ranges_of_die(struct fathom_ranges *r, const struct fathom_unit *unit,
			  const struct fathom_die *die, uint64_t *left);

/*
 * Yields the next range that is not empty, [ret_low, ret_high) in svma. Returns FATHOM_OK,
 * FATHOM_END, or an error that names section and offset.
 */
fathom_err fathom_ranges_next(struct fathom_ranges *r, uint64_t *ret_low, uint64_t *ret_high,
			      struct fathom_errinfo *reterr);

#endif
