/* SPDX-License-Identifier: MIT */
/* Names as GNU binutils demangle them, and symbols as GNU addr2line finds them by name. */
#ifndef FATHOM_CLI_COMPAT_ADDR2LINE_GNU_NAMES_H
#define FATHOM_CLI_COMPAT_ADDR2LINE_GNU_NAMES_H

#include <stdbool.h>

#include <fathom/compat.h>

/* Cache of demangled names. All zero when empty. */
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
 * Returns the demangled form of @name, or @name itself. Keeps leading dots and dollar signs, and
 * everything from an at sign on (@plt, a version). The text stays valid.
 */
const char *gnu_names_get(struct gnu_names *names, const char *name);

/* The symbols of a target by name, indexed on first use. All zero when empty. */
struct gnu_symbols {
	const struct fathom_target *target;
	struct gnu_symbol *linked;    /* by linkage name */
	struct gnu_symbol *demangled; /* by demangled name */
	size_t size;
};

void gnu_symbols_deinit(struct gnu_symbols *symbols);

/*
 * Finds the value of the first symbol with the linkage name @name, else of the first with that
 * demangled name; returns false if there is none.
 */
bool gnu_symbols_find(struct gnu_symbols *symbols, struct gnu_names *names, const char *name,
		      uint64_t *ret_value);

#endif
