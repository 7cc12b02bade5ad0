/* SPDX-License-Identifier: MIT */
/* Stands in for demangle_iberty.c in builds without libiberty: names are shown as linked. */
#include "demangle.h"

bool fathom_demangle(struct fathom_str name, bool ada, struct fathom_array *out)
{
	(void)name;
	(void)ada;
	(void)out;
	return false;
}
