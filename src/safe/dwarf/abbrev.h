/* SPDX-License-Identifier: MIT */
/*
 * .debug_abbrev (DWARF 5, 7.5.3), compiled into plans.
 *
 * Most of .debug_info is skipped when it is scanned. So each abbreviation becomes a plan: runs of
 * fixed-size attributes that nobody asks for are joined into one step. An entry whose attributes
 * all have a fixed size is skipped by one addition. Only entries of the kinds below have their
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

/* Kinds of entries for a search for functions. */
enum fathom_die_kind {
	FATHOM_DIE_OTHER,    /* never read: variables, parameters, members, call sites ... */
	FATHOM_DIE_UNIT,     /* the root of a unit */
	FATHOM_DIE_SPACE,    /* namespaces and modules: may hold functions */
	FATHOM_DIE_TYPE,     /* types that may hold functions in some languages, never in C */
	FATHOM_DIE_FUNCTION, /* subprograms and entry points with code */
	FATHOM_DIE_ABSTRACT, /* those without code: declarations, and abstract instances of inlined
				functions */
	FATHOM_DIE_INLINED,  /* inlined subroutines */
	FATHOM_DIE_BLOCK,    /* lexical blocks: may hold functions and inlined calls */
};

/* The attributes that are read. */
enum fathom_slot {
	FATHOM_AT_NAME,
	FATHOM_AT_LINKAGE_NAME,
	FATHOM_AT_LOW_PC,
	FATHOM_AT_HIGH_PC,
	FATHOM_AT_RANGES,
	FATHOM_AT_ORIGIN, /* DW_AT_abstract_origin */
	FATHOM_AT_SPECIFICATION,
	FATHOM_AT_SIBLING,
	FATHOM_AT_CALL_FILE,
	FATHOM_AT_CALL_LINE,
	FATHOM_AT_CALL_COLUMN,
	FATHOM_AT_DISCRIMINATOR,
	/* from here on: in the root of a unit only */
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
	FATHOM_STEP_SKIP_BLOCK, /* a LEB128 length, and that many bytes */
	FATHOM_STEP_SKIP_FORM,  /* any other value of variable size */
	FATHOM_STEP_READ,       /* one value into slot */
	FATHOM_STEP_READ_FIXED, /* one value of arg bytes (1, 2, 4 or 8) into slot */
	FATHOM_STEP_CONST,      /* implicit_const: its value is at offset arg of .debug_abbrev */
};

struct fathom_step {
	uint8_t op;
	uint8_t slot;
	uint16_t form;
	uint32_t arg;
};

/* Most steps of one abbreviation: a skipped run takes one, and few attributes are read. */
#define FATHOM_MAX_STEPS 255

/* The size of attributes that are not all of fixed size. */
#define FATHOM_ABBREV_VARIES 0xffff

/* The place of a DW_AT_sibling that is no DW_FORM_ref4 at a fixed place. */
#define FATHOM_ABBREV_NO_SIBLING 0xff

struct fathom_abbrev {
	uint32_t code;
	uint32_t first_step;
	uint32_t attributes; /* offset of the attributes in the table, for entry.h */
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
	struct fathom_abbrev *abbrevs; /* the caller's, cap_abbrevs of them */
	struct fathom_step *steps;     /* the caller's, cap_steps of them */
	uint32_t cap_abbrevs;
	uint32_t cap_steps;
	uint32_t n_abbrevs;
	uint32_t n_steps;
	struct fathom_encoding encoding;
	bool dense;   /* the abbreviation of code N is abbrevs[N - 1] */
	uint64_t off; /* start of the table in .debug_abbrev */
	uint64_t end; /* end of the table in .debug_abbrev */
	const uint8_t *section;
	bool swap;
	/*
	 * By code: how to skip an entry whose code takes one byte, in bytes from its code on; 0 if
	 * these tables cannot. One look here skips most entries.
	 * - skip[]: the size of childless entries of kind OTHER and of fixed size.
	 * - pass[]: the same, for kinds TYPE and ABSTRACT, too. If such an entry has children,
	 *   FATHOM_PASS_SIBLING plus the place of the DW_FORM_ref4 that leads after them.
	 */
	uint16_t skip[FATHOM_ABBREV_SHORT];
	uint16_t pass[FATHOM_ABBREV_SHORT];
};

/* The storage was too small: call again with more of both. */
#define FATHOM_GROW 1

/*
 * Compiles the table at @off of .debug_abbrev of @dwarf into @t, whose storage the caller has set.
 * If @last is not 0, compiles only the abbreviation with this code, which is enough to read an
 * entry that uses it. Returns FATHOM_OK, FATHOM_GROW, or an error that names the offset.
 */
fathom_err fathom_abbrevs_read(const struct fathom_dwarf *dwarf, uint64_t off,
			       struct fathom_encoding encoding, uint64_t last,
			       struct fathom_abbrevs *t, struct fathom_errinfo *reterr);

/* Returns the abbreviation of @code if codes are not dense; NULL if there is none. */
const struct fathom_abbrev *fathom_abbrevs_search(const struct fathom_abbrevs *t, uint64_t code);

static inline const struct fathom_abbrev *fathom_abbrevs_find(const struct fathom_abbrevs *t,
							      uint64_t code)
{
	if (t->dense)
		return code - 1 < t->n_abbrevs ? &t->abbrevs[code - 1] : NULL;
	return fathom_abbrevs_search(t, code);
}

#endif
