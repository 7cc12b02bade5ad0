/* SPDX-License-Identifier: MIT */
/* For builds without dlopen: all libraries are linked. */
#include "host/base/library.h"

#include <string.h>

fathom_err fathom_library_get(const struct fathom_library *l, struct fathom_library_kept *kept,
			      void *table, struct fathom_errinfo *reterr)
{
	(void)kept;
	(void)reterr;
	memcpy(table, l->linked, l->n * sizeof kept->functions[0]);
	return FATHOM_OK;
}
