/* SPDX-License-Identifier: MIT */
/*
 * Shared libraries that are opened when they are first needed, by dlopen(3). They stay open: what
 * others may have of them must not go away.
 */
#ifndef FATHOM_BASE_LIBRARY_H
#define FATHOM_BASE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* A function that is wanted. */
struct fathom_library_symbol {
	const char *name;
	size_t place; /* of the pointer to it in the table that is filled in */
};

/* Fills in @table; false when the library called @soname, or one of @n functions, is not there. */
bool fathom_library_open(const char *soname, const struct fathom_library_symbol *symbols, size_t n,
			 void *table);

#endif
