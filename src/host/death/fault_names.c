/* SPDX-License-Identifier: MIT */
#include "fathom/death.h"

const char *fathom_fault_place_name(enum fathom_fault_place place)
{
	static const char *const names[] = { "",
					     "null",
					     "unmapped",
					     "stack-overflow",
					     "stack-guard",
					     "no-access",
					     "not-writable",
					     "not-executable",
					     "past-end",
					     "no-address",
					     "not-canonical" };

	return (size_t)place < sizeof names / sizeof *names ? names[place] : "";
}

const char *fathom_access_name(enum fathom_access access)
{
	static const char *const names[] = { "", "read", "write", "execute" };

	return (size_t)access < sizeof names / sizeof *names ? names[access] : "";
}
