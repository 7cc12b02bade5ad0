/* SPDX-License-Identifier: MIT */
/*
 * .debug_abbrev (DWARF 5, 7.5.3), compiled into plans.
 *
 * Scanning .debug_info means skipping almost everything in it. So each abbreviation becomes a plan:
 * runs of fixed-size attributes that nobody asks for are joined into one step, and where all of an
 * entry has a fixed size, skipping it is one addition. Only entries of the kinds below have their
 * attributes read at all.
 *
 * The arrays are the caller's. Codes are nearly always 1, 2, 3 ... and then index the array;
 * otherwise the array is sorted by code.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_DWARF_ABBREV_H
#define FATHOM_DWARF_ABBREV_H

#include "safe/dwarf/form.h"

/* What an entry is to somebody who looks for functions. */
enum fathom_die_kind {
	FATHOM_DIE_OTHER,    /* never read: variables, parameters, members, call sites ... */
	FATHOM_DIE_UNIT,     /* the root of a unit */
	FATHOM_DIE_SPACE,    /* namespaces and modules: functions may stand inside */
	FATHOM_DIE_TYPE,     /* types that may hold functions in some languages, never in C */
	FATHOM_DIE_FUNCTION, /* subprograms and entry points with code */
	FATHOM_DIE_ABSTRACT, /* those without: declarations, and what is inlined elsewhere */
	FATHOM_DIE_INLINED,  /* inlined subroutines */
	FATHOM_DIE_BLOCK,    /* lexical blocks: functions and inlined calls may stand inside */
};

/* The attributes that are read. */
enum fathom_slot {
	FATHOM_AT_NAME,
	FATHOM_AT_LINKAGE_NAME,
	FATHOM_AT_LOW_PC,
	FATHOM_AT_HIGH_PC,
	FATHOM_AT_RANGES,
	FATHOM_AT_ORIGIN, /* abstract_origin */
	FATHOM_AT_SPECIFICATION,
	FATHOM_AT_SIBLING,
	FATHOM_AT_CALL_FILE,
	FATHOM_AT_CALL_LINE,
	FATHOM_AT_CALL_COLUMN,
	FATHOM_AT_DISCRIMINATOR,
	/* the rest stand in the root of a unit only */
	FATHOM_AT_STMT_LIST,
	FATHOM_AT_COMP_DIR,
	FATHOM_AT_LANGUAGE,
	FATHOM_AT_STR_OFFSETS_BASE,
	FATHOM_AT_ADDR_BASE,
	FATHOM_AT_RNGLISTS_BASE,
	FATHOM_AT_GNU_RANGES_BASE,
	FATHOM_AT_DWO_NAME,
	FATHOM_AT_DWO_ID,
	FATHOM_AT_COUNT
};

enum fathom_step_op {
	FATHOM_STEP_SKIP,       /* arg bytes */
	FATHOM_STEP_SKIP_LEB,   /* one LEB128 number */
	FATHOM_STEP_SKIP_BLOCK, /* a LEB128 length, and so many bytes */
	FATHOM_STEP_SKIP_FORM,  /* any other value of variable size */
	FATHOM_STEP_READ,       /* one value into slot */
	FATHOM_STEP_READ_FIXED, /* one of arg bytes: 1, 2, 4 or 8 */
	FATHOM_STEP_CONST, /* implicit_const: the value stands at offset arg of .debug_abbrev */
};

struct fathom_step {
	uint8_t op;
	uint8_t slot;
	uint16_t form;
	uint32_t arg;
};

/* Steps of one abbreviation: what is only skipped takes few, and nothing has so many to be read. */
#define FATHOM_MAX_STEPS 255

/* An entry whose attributes are not all of fixed size. */
#define FATHOM_ABBREV_VARIES 0xffff

/* An entry whose DW_AT_sibling is not a DW_FORM_ref4 at a fixed place. */
#define FATHOM_ABBREV_NO_SIBLING 0xff

struct fathom_abbrev {
	uint32_t code;
	uint32_t first_step;
	uint32_t attributes; /* where they stand, from the start of the table: for entry.h */
	uint16_t tag;
	uint16_t fixed; /* bytes of all attributes, or FATHOM_ABBREV_VARIES */
	uint8_t n_steps;
	uint8_t sibling; /* bytes before DW_AT_sibling, or FATHOM_ABBREV_NO_SIBLING */
	uint8_t kind;    /* enum fathom_die_kind */
	uint8_t has_children;
};

/* Codes below this take one byte. */
#define FATHOM_ABBREV_SHORT 128

#define FATHOM_PASS_SIBLING 0x8000

struct fathom_abbrevs {
	struct fathom_abbrev *abbrevs; /* caller: storage for cap_abbrevs */
	struct fathom_step *steps;     /* caller: storage for cap_steps */
	uint32_t cap_abbrevs;
	uint32_t cap_steps;
	uint32_t n_abbrevs;
	uint32_t n_steps;
	struct fathom_encoding encoding;
	bool dense;   /* the abbreviation of code N is abbrevs[N - 1] */
	uint64_t off; /* where in .debug_abbrev the table was read */
	uint64_t end; /* and where it ended */
	const uint8_t *section;
	bool swap;
	/*
	 * How to skip an entry whose code takes one byte, counted from that byte; 0: not by these
	 * tables. Most entries are skipped by one look in here. skip[] has the size of childless
	 * entries of kind OTHER that are of fixed size. pass[] has those, also of kinds TYPE and
	 * ABSTRACT, and of entries of the three kinds that have children FATHOM_PASS_SIBLING plus
	 * the place of the DW_FORM_ref4 that leads behind the children.
	 */
	uint16_t skip[FATHOM_ABBREV_SHORT];
	uint16_t pass[FATHOM_ABBREV_SHORT];
};

/* The storage was too small: give more of both and call again. */
#define FATHOM_GROW 1

/*
 * Compiles the table at @off of the section .debug_abbrev of @dwarf into @t, whose storage the
 * caller has set: all of it, or when @last is not 0, only the abbreviation of this code, which is
 * enough to read an entry that uses it. Returns FATHOM_OK, FATHOM_GROW, or an error that names the
 * offset.
 */
fathom_err fathom_abbrevs_read(const struct fathom_dwarf *dwarf, uint64_t off,
			       struct fathom_encoding encoding, uint64_t last,
			       struct fathom_abbrevs *t, struct fathom_errinfo *reterr);

/* The abbreviation of @code when codes are not dense; NULL when there is none. */
const struct fathom_abbrev *fathom_abbrevs_search(const struct fathom_abbrevs *t, uint64_t code);

static inline const struct fathom_abbrev *fathom_abbrevs_find(const struct fathom_abbrevs *t,
							      uint64_t code)
{
	if (t->dense)
		return code - 1 < t->n_abbrevs ? &t->abbrevs[code - 1] : NULL;
	return fathom_abbrevs_search(t, code);
}

#endif
