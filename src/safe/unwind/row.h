/* SPDX-License-Identifier: MIT */
/*
 * Rows: what call frame instructions (DWARF 5, 6.4.2; LSB 5.0, 10.6) say about the registers of a
 * caller at one range of code. Reads the instructions of DWARF 5, of GNU (args_size,
 * negative_offset_extended), MIPS (advance_loc8) and aarch64 (negate_ra_state). Not handled: those
 * of SPARC and AMD GPUs.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_UNWIND_ROW_H
#define FATHOM_UNWIND_ROW_H

#include "safe/base/limits.h"
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
	uint8_t kind;   /* enum fathom_rule_kind */
	uint8_t number; /* of the other register */
	uint32_t size;  /* of the expression, in bytes */
	union {
		int64_t offset;
		const uint8_t *expression; /* in the section */
	};
};

struct fathom_row {
	uint64_t low; /* svma of the code that the row is about */
	uint64_t high;
	struct fathom_rule cfa; /* REGISTER or EXPRESSION; UNSPECIFIED: no rule was stated */
	uint64_t stated; /* bit i: rule[i] is stated; else it is UNSPECIFIED, rule[i] stale */
	struct fathom_rule rule[FATHOM_REGISTERS]; /* read it by fathom_row_rule() */
	uint8_t return_register;
	bool is_ra_signed;    /* aarch64: DW_CFA_AARCH64_negate_ra_state */
	bool is_signal_frame; /* its caller is what a signal interrupted, which may be at 0 */
};

/* Returns the rule of register @number, below FATHOM_REGISTERS. */
static inline struct fathom_rule fathom_row_rule(const struct fathom_row *row, uint8_t number)
{
	return row->stated >> number & 1 ? row->rule[number] : (struct fathom_rule){ .kind = 0 };
}

/* State that DW_CFA_remember_state keeps of a row. Its stated rules stand in the reader's pool. */
struct fathom_row_state {
	struct fathom_rule cfa;
	uint64_t stated;
	uint8_t first; /* index of its rules in the pool */
	bool is_ra_signed;
};

/* A walk over the rows of one FDE. */
struct fathom_row_reader {
	const struct fathom_fde *fde;
	const struct fathom_unwind_arch *arch;
	struct fathom_cursor c;
	uint64_t location; /* svma that the instructions have come to */
	struct fathom_row now;
	/* Number 0 is the state after the CIE's instructions; then those that were remembered. */
	struct fathom_row_state state[FATHOM_ROW_STATES];
	struct fathom_rule pool[FATHOM_ROW_SAVED_RULES];
	uint8_t n_states;
	uint8_t n_pool;
	fathom_err err; /* that ended the walk */
};

/*
 * Runs the CIE's instructions. Returns FATHOM_E_CORRUPT; FATHOM_E_UNSUPPORTED (an instruction, a
 * return address register or an augmentation that is unknown); or FATHOM_E_LIMIT (more than
 * FATHOM_ROW_STATES states, or FATHOM_ROW_SAVED_RULES rules in them).
 */
fathom_err fathom_row_reader_init(struct fathom_row_reader *r, const struct fathom_fde *fde,
				  const struct fathom_unwind_arch *arch);

/*
 * Reads the next row into r->now, in address order: FATHOM_OK, FATHOM_END after the last, or an
 * error as above; no row follows an error. Rows without code are passed over. Rules of registers
 * that
 * @r's arch does not have are dropped.
 */
fathom_err fathom_row_next(struct fathom_row_reader *r);

/*
 * Finds the row of @svma; afterwards it is r->now. Call it once, on a new reader. FATHOM_END if
 * @svma is outside @r's FDE; errors as above.
 */
fathom_err fathom_row_find(struct fathom_row_reader *r, uint64_t svma);

#endif
