/* SPDX-License-Identifier: MIT */
/*
 * Rows: what call frame instructions (DWARF 5, 6.4.2; LSB 5.0, 10.6) say about the registers of a
 * caller at one range of code.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_UNWIND_ROW_H
#define FATHOM_UNWIND_ROW_H

#include "safe/dwarf/cfi.h"
#include "safe/unwind/registers.h"

enum fathom_rule_kind {
	FATHOM_RULE_UNSPECIFIED = 0,   /* the psABI's default: kept if callee-saved, else unknown */
	FATHOM_RULE_UNDEFINED = 1,     /* not to be recovered */
	FATHOM_RULE_SAME = 2,          /* keeps its value */
	FATHOM_RULE_AT_OFFSET = 3,     /* saved at CFA + offset */
	FATHOM_RULE_OFFSET = 4,        /* is CFA + offset */
	FATHOM_RULE_REGISTER = 5,      /* is register + offset (offset: of the CFA only) */
	FATHOM_RULE_AT_EXPRESSION = 6, /* saved at the expression's value */
	FATHOM_RULE_EXPRESSION = 7     /* is the expression's value */
};

struct fathom_rule {
	uint8_t kind;     /* enum fathom_rule_kind */
	uint8_t number;   /* of the other register */
	uint32_t size;    /* of the expression, in bytes */
	union {
		int64_t offset;
		const uint8_t *expression; /* in the section */
	};
};

struct fathom_row {
	uint64_t low;  /* svma of the code that the row is about */
	uint64_t high;
	struct fathom_rule cfa; /* REGISTER or EXPRESSION; UNSPECIFIED: no rule was stated */
	struct fathom_rule rule[FATHOM_REGISTERS];
	uint8_t return_register;
	bool is_ra_signed; /* aarch64: DW_CFA_AARCH64_negate_ra_state */
};

/* States of one row that DW_CFA_remember_state keeps; also of one walk over an FDE. */
#define FATHOM_ROW_STATES 8

/* A walk over the rows of one FDE. */
struct fathom_row_reader {
	const struct fathom_fde *fde;
	const struct fathom_unwind_arch *arch;
	struct fathom_cursor c;
	struct fathom_row initial; /* after the CIE's instructions */
	struct fathom_row now;
	struct fathom_row saved[FATHOM_ROW_STATES];
	uint8_t n_saved;
};

/*
 * Runs the CIE's instructions. Returns FATHOM_E_CORRUPT, FATHOM_E_UNSUPPORTED (an instruction that
 * is unknown) or FATHOM_E_LIMIT (more states than FATHOM_ROW_STATES).
 */
fathom_err fathom_row_reader_init(struct fathom_row_reader *r, const struct fathom_fde *fde,
				  const struct fathom_unwind_arch *arch);

/*
 * Reads the next row into r->now, in address order: FATHOM_OK, FATHOM_END behind the last, or an
 * error as above. Rows without code are passed over.
 */
fathom_err fathom_row_next(struct fathom_row_reader *r);

/* Finds the row of @svma, which @r's FDE covers; afterwards it is r->now. Errors as above. */
fathom_err fathom_row_find(struct fathom_row_reader *r, uint64_t svma);

#endif
