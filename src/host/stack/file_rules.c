/* SPDX-License-Identifier: MIT */
/* The unwind rules of a file, for callers. */
#include <stdlib.h>

#include "host/module/rule_table.h"
#include "host/space/target.h"

fathom_err fathom_unwind_table_make(struct fathom_target *target,
				    const struct fathom_unwind_table **ret_table,
				    struct fathom_errinfo *reterr)
{
	struct fathom_unwind_table *t = NULL;
	fathom_err err;

	if (!target->stated)
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				   "unwind rules are those of a file: this target is none");
	err = fathom_rule_table_make(target->stated, &t);
	if (err == FATHOM_E_UNSUPPORTED)
		(void)fathom_fail(reterr, err, "", 0,
				  "its machine is none whose rules fathom reads: x86-64, i386, "
				  "aarch64");
	else if (err)
		(void)fathom_fail(reterr, err, "", 0, fathom_err_name(err));
	err = fathom_target_end_call(target, err, reterr);
	if (err)
		free(t);
	else
		*ret_table = t;
	return err;
}

void fathom_unwind_table_free(const struct fathom_unwind_table *table)
{
	free((void *)(uintptr_t)table);
}
