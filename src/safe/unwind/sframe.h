/* SPDX-License-Identifier: MIT */
/*
 * SFrame sections (binutils' "The SFrame format", versions 1 and 2): for each range of code where
 * the CFA, the return address and the frame pointer are. They say nothing of other registers, so
 * they serve only where there is no call frame information. Not handled: version 3; s390x.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_UNWIND_SFRAME_H
#define FATHOM_UNWIND_SFRAME_H

#include "safe/unwind/row.h"

/* One section. */
struct fathom_sframe {
	struct fathom_bytes section;
	uint64_t svma;
	bool swap;
	/* by fathom_sframe_init() */
	struct fathom_bytes fdes;
	struct fathom_bytes fres;
	uint64_t fdes_svma;
	uint32_t n_fdes;
	uint8_t fde_size; /* bytes */
	uint8_t version;
	int8_t fp_offset; /* from the CFA; 0: each row states it */
	int8_t ra_offset; /* likewise */
	bool is_sorted;
	bool is_relative; /* starts of functions are relative to where they are stated */
};

/*
 * Reads the header of @section, at @svma. Returns FATHOM_E_UNSUPPORTED for another version or a
 * machine that is not @arch's, FATHOM_E_CORRUPT if the section is shorter than it says.
 */
fathom_err fathom_sframe_init(struct fathom_sframe *s, struct fathom_bytes section, uint64_t svma,
			      bool swap, const struct fathom_unwind_arch *arch);

/*
 * Finds the row of the code at @svma. Registers that SFrame does not know are
 * FATHOM_RULE_UNDEFINED. FATHOM_END if no function covers it, FATHOM_E_CORRUPT.
 */
fathom_err fathom_sframe_find(const struct fathom_sframe *s, uint64_t svma,
			      const struct fathom_unwind_arch *arch, struct fathom_row *ret);

#endif
