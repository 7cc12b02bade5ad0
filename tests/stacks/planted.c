/* SPDX-License-Identifier: MIT */
/*
 * A wrong rule: linked with --wrap=fathom_row_find, adds 8 to the CFA in one function, the one of
 * the 20th row that is looked for, where the return address is found nevertheless: what leads to no
 * code is mended by following the code. What compares stacks with the truth has to notice.
 */
#include "safe/unwind/row.h"

fathom_err __real_fathom_row_find(struct fathom_row_reader *r, uint64_t svma);
fathom_err __wrap_fathom_row_find(struct fathom_row_reader *r, uint64_t svma);

fathom_err __wrap_fathom_row_find(struct fathom_row_reader *r, uint64_t svma)
{
	static uint64_t chosen;
	static unsigned n;
	const fathom_err err = __real_fathom_row_find(r, svma);

	if (++n == 20)
		chosen = r->fde->low;
	if (!err && chosen == r->fde->low && r->now.cfa.kind == FATHOM_RULE_REGISTER) {
		r->now.cfa.offset += 8;
		r->now.rule[r->now.return_register].offset -= 8;
	}
	return err;
}
