/* SPDX-License-Identifier: MIT */
/*
 * Names of the kernel's constants, in tables that tools/syscall_tables.py makes of constants.txt.
 * Values differ between machines: a row says for which it holds.
 */
#ifndef FATHOM_SYSCALLS_CONSTANT_NAMES_H
#define FATHOM_SYSCALLS_CONSTANT_NAMES_H

#include "host/syscalls/constant_tables.h"
#include "safe/base/bytes.h"

struct fathom_constant {
	uint64_t value;
	uint32_t name;   /* offset in fathom_constant_names */
	uint32_t arches; /* bits, by fathom_syscall_arch_bit() */
};

struct fathom_constant_place {
	uint16_t first;
	uint16_t n;
	uint32_t unknown; /* what stands for a value without a name: offset of its text */
};

extern const char fathom_constant_names[];
extern const struct fathom_constant fathom_constant_rows[];
extern const struct fathom_constant_place fathom_constant_places[FATHOM_CONSTANTS_TABLES];

/* Returns the name of @value in @table for the architecture @arch, a bit; NULL without one. */
const char *fathom_constant_name(enum fathom_constant_table table, uint8_t arch, uint64_t value);

/*
 * The same, of a table that is sorted by value: that of the requests of ioctl(2). *@at is at first
 * 0; later calls return further names of the same value.
 */
const char *fathom_constant_find(enum fathom_constant_table table, uint8_t arch, uint64_t value,
				 uint32_t *at);

/*
 * Returns the name of the first constant that is not 0 and whose bits are all set in *@value, and
 * takes them away there; NULL if no such constant is left. *@from is where to begin, at first 0.
 */
const char *fathom_constant_take(enum fathom_constant_table table, uint8_t arch, uint64_t *value,
				 uint32_t *from);

/* Returns what stands for values without a name; "" if nothing does. */
const char *fathom_constant_unknown(enum fathom_constant_table table);

#endif
