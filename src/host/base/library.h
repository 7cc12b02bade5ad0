/* SPDX-License-Identifier: MIT */
/*
 * Shared libraries, opened by dlopen(3) on demand: by their names alone, never by a path. They stay
 * open: pointers into them may remain.
 */
#ifndef FATHOM_BASE_LIBRARY_H
#define FATHOM_BASE_LIBRARY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "safe/base/error.h"

/* A function to look up. */
struct fathom_library_symbol {
	const char *name;
	size_t place; /* offset of its pointer in the table */
};

/* Fills @table in. Returns false if library @soname, or one of its @n functions, is missing. */
bool fathom_library_open(const char *soname, const struct fathom_library_symbol *symbols, size_t n,
			 void *table);

/*
 * A list F(TABLE, FUNCTION) F(TABLE, FUNCTION) ... of what is called of a library makes the members
 * of its table, with the types of its header; the symbols to look up; and the table of a program
 * that is linked with it.
 */
#define FATHOM_LIBRARY_MEMBER(table, function) __typeof__(&(function)) function;
#define FATHOM_LIBRARY_SYMBOL(table, function) { #function, offsetof(struct table, function) },
#define FATHOM_LIBRARY_LINKED(table, function) .function = (function),

/* Libraries whose functions a session keeps. */
enum fathom_library_place {
	FATHOM_LIBRARY_DEFLATE,
	FATHOM_LIBRARY_ZLIB,
	FATHOM_LIBRARY_ZSTD,
	FATHOM_LIBRARY_LZMA,
	FATHOM_LIBRARY_LZ4,
	FATHOM_LIBRARIES
};

/* Most functions of such a library. */
#define FATHOM_LIBRARY_FUNCTIONS 8

/* The functions of a library that was opened, or that it is missing. Empty if all is zero. */
struct fathom_library_kept {
	_Atomic int state;
	void (*functions[FATHOM_LIBRARY_FUNCTIONS])(void);
};

/* A library whose functions are kept, or which the program is linked with. */
struct fathom_library {
	const void *linked; /* the table; NULL: it is opened */
	const char *soname;
	const char *missing; /* what is said if it is not there */
	const struct fathom_library_symbol *symbols;
	size_t n; /* all that the table has */
	enum fathom_library_place place;
};

/*
 * Fills @table in, and keeps it in @kept, of FATHOM_LIBRARIES, or takes it from there. So only the
 * first call needs the loader, whose lock a thread may hold that waits for others of ours: one in a
 * constructor. @kept may be NULL. FATHOM_E_UNSUPPORTED: the library is missing; @reterr says so,
 * with its name as the file.
 */
fathom_err fathom_library_get(const struct fathom_library *l, struct fathom_library_kept *kept,
			      void *table, struct fathom_errinfo *reterr);

#endif
