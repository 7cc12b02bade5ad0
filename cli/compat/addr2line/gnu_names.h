/* SPDX-License-Identifier: MIT */
/* Names as GNU binutils demangle them, and symbols as GNU addr2line finds them by name. */
#ifndef FATHOM_CLI_COMPAT_ADDR2LINE_GNU_NAMES_H
#define FATHOM_CLI_COMPAT_ADDR2LINE_GNU_NAMES_H

#include <stdbool.h>

#include <fathom/compat.h>

/* What was demangled so far. Zero is the empty one. */
struct gnu_names {
	uint32_t mangling; /* enum fathom_mangling */
	uint32_t flags;    /* FATHOM_DEMANGLE_ */
	struct gnu_name *table;
	size_t size; /* a power of two, or 0 */
	size_t n;
	char *scratch;
	size_t scratch_size;
};

void gnu_names_deinit(struct gnu_names *names);

/*
 * The demangled form of @name, or @name itself. Dots and dollar signs before it and what follows an
 * at sign (@plt, a version) are left as they are. The text stays valid.
 */
const char *gnu_names_get(struct gnu_names *names, const char *name);

/* The symbols of a target by name, made on first use. Zero is the empty one. */
struct gnu_symbols {
	const struct fathom_target *target;
	struct gnu_symbol *linked;    /* by the names in the table */
	struct gnu_symbol *demangled; /* by their demangled forms */
	size_t size;
};

void gnu_symbols_deinit(struct gnu_symbols *symbols);

/*
 * The value of the first symbol called @name, or else of the first whose demangled form it is;
 * false when there is none.
 */
bool gnu_symbols_find(struct gnu_symbols *symbols, struct gnu_names *names, const char *name,
		      uint64_t *ret_value);

#endif
