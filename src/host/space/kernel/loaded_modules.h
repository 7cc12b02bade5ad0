/* SPDX-License-Identifier: MIT */
/*
 * The loaded modules, from /proc/modules: "NAME SIZE USERS USED-BY STATE 0xADDRESS" (Linux,
 * kernel/module/procfs.c).
 *
 * The size counts all memory of a module. Since Linux 6.4 that memory is in several pieces, and the
 * address is that of the first, the code: memory within the size may then be another module's. So a
 * range tells whose an address may be, not whose it is.
 */
#ifndef FATHOM_KERNEL_LOADED_MODULES_H
#define FATHOM_KERNEL_LOADED_MODULES_H

#include "safe/base/bytes.h"
#include "safe/base/error.h"

struct fathom_keyed;

struct fathom_kernel_range {
	struct fathom_str name;
	uint64_t start; /* avma */
	uint64_t size;
};

struct fathom_kernel_modules {
	char *text;                        /* holds the names */
	struct fathom_kernel_range *items; /* in the kernel's order; none with a hidden address */
	size_t n;
	struct fathom_keyed *by_start; /* start -> index in items */
	uint64_t *ends;                /* ends[i]: the largest end in by_start[0..i] */
};

/*
 * Parses @text, @size bytes from malloc(), and takes it over. Skips malformed lines.
 * FATHOM_E_MEMORY.
 */
fathom_err fathom_kernel_modules_parse(char *text, size_t size, struct fathom_kernel_modules *ret);

/* Reads the text at @path; an unreadable one has no modules. FATHOM_E_MEMORY. */
fathom_err fathom_kernel_modules_read(const char *path, struct fathom_kernel_modules *ret);
/* Finds at most @cap modules whose ranges hold @avma, in the kernel's order; returns how many. */
size_t fathom_kernel_modules_at(const struct fathom_kernel_modules *m, uint64_t avma, uint32_t *ret,
				size_t cap);
void fathom_kernel_modules_deinit(struct fathom_kernel_modules *m);

#endif
