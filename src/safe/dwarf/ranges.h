/* SPDX-License-Identifier: MIT */
/*
 * Range lists: .debug_ranges (DWARF 4, 2.17.3) and .debug_rnglists (DWARF 5, 7.25), and the plain
 * DW_AT_low_pc / DW_AT_high_pc pair, all as one iterator.
 *
 * Linkers mark the ranges of code that they dropped with an address that no code can have (0, 1,
 * the largest or the one below it). A range list whose base is such a mark yields nothing; what
 * starts at 0 or 1 is left to the caller, who knows where the file has code.
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
	uint64_t *left; /* entries that may still be read */
	uint8_t form;   /* what the list is made of; see ranges.c */
};

/*
 * How many entries of lists may be read in one walk over debugging entries of @dwarf, whose lists
 * of version 4 are in @skeleton. Compilers let a few entries share a list; lists that thousands
 * share would multiply without this bound.
 */
uint64_t fathom_ranges_allowed(const struct fathom_dwarf *dwarf,
			       const struct fathom_dwarf *skeleton);

/*
 * Prepares the ranges of @die: of DW_AT_ranges where it has one, else of low_pc and high_pc. An
 * entry with a low_pc only has none. False when it has no code. What is read is taken from @left.
 */
bool fathom_ranges_of_die(struct fathom_ranges *r, const struct fathom_unit *unit,
			  const struct fathom_die *die, uint64_t *left);

/*
 * The next range that is not empty: FATHOM_OK, FATHOM_END, or an error that names section and
 * offset. Addresses are svma; [ret_low, ret_high).
 */
fathom_err fathom_ranges_next(struct fathom_ranges *r, uint64_t *ret_low, uint64_t *ret_high,
			      struct fathom_errinfo *reterr);

#endif
