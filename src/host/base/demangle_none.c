/* SPDX-License-Identifier: MIT */
/* For builds without libiberty: nothing is demangled. */
#include "host/base/demangle.h"

fathom_err fathom_demangle(struct fathom_str name, bool ada, struct fathom_bytes_array *out)
{
	(void)name;
	(void)ada;
	(void)out;
	return FATHOM_END;
}

fathom_err fathom_demangle_as(struct fathom_str name, uint32_t mangling, uint32_t flags,
			      struct fathom_bytes_array *out)
{
	(void)name;
	(void)mangling;
	(void)flags;
	(void)out;
	return FATHOM_END;
}
