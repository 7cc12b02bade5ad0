/* SPDX-License-Identifier: MIT */
/*
 * Shared libraries, opened by dlopen(3) on demand. They stay open: pointers into them may remain.
 */
#ifndef FATHOM_BASE_LIBRARY_H
#define FATHOM_BASE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* A function to look up. */
struct fathom_library_symbol {
	const char *name;
	size_t place; /* offset of its pointer in the table */
};

/* Fills @table in. Returns false if library @soname, or one of its @n functions, is missing. */
bool fathom_library_open(const char *soname, const struct fathom_library_symbol *symbols, size_t n,
			 void *table);

#endif
