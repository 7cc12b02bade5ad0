/* SPDX-License-Identifier: MIT */
/*
 * The modules that are loaded, from /proc/modules: "NAME SIZE USERS USED-BY STATE 0xADDRESS"
 * (Linux, kernel/module/procfs.c).
 *
 * The size is of all the memory of a module. Since Linux 6.4 that is in several pieces, of which
 * the address is the first, with the code: what lies within the size may then be another module's.
 * So a range says whose an address may be, not whose it is.
 */
#ifndef FATHOM_TARGET_KERNEL_LOADED_MODULES_H
#define FATHOM_TARGET_KERNEL_LOADED_MODULES_H

#include "safe/base/bytes.h"
#include "safe/base/error.h"

struct fathom_keyed;

struct fathom_kernel_range {
	struct fathom_str name;
	uint64_t start; /* avma */
	uint64_t size;
};

struct fathom_kernel_modules {
	char *text;                        /* with the names */
	struct fathom_kernel_range *items; /* in the kernel's order; without hidden addresses */
	size_t n;
	struct fathom_keyed *by_start; /* start -> number in items */
	uint64_t *ends;                /* the last end of any up to there in by_start */
};

/*
 * Takes @text, of @size bytes from malloc(), apart, and keeps it. Lines that are no modules are
 * left out. FATHOM_E_MEMORY.
 */
fathom_err fathom_kernel_modules_parse(char *text, size_t size, struct fathom_kernel_modules *ret);

/* Reads the text at @path; there are none where it cannot be read. FATHOM_E_MEMORY. */
fathom_err fathom_kernel_modules_read(const char *path, struct fathom_kernel_modules *ret);
/* Finds those whose ranges hold @avma, at most @cap, in the kernel's order; returns how many. */
size_t fathom_kernel_modules_at(const struct fathom_kernel_modules *m, uint64_t avma, uint32_t *ret,
				size_t cap);
void fathom_kernel_modules_deinit(struct fathom_kernel_modules *m);

#endif
