/* SPDX-License-Identifier: MIT */
/* Sets of system calls, as -e trace= of strace(1) writes them. */
#ifndef FATHOM_TRACE_SYSCALL_SET_H
#define FATHOM_TRACE_SYSCALL_SET_H

#include "host/syscalls/syscall_table.h"
#include "safe/base/error.h"

/* Numbers that a set knows; larger ones, which have no names, are in it if it says "all". */
#define FATHOM_SYSCALL_SET_NUMBERS 512

/* x32 makes calls of x86-64 with this bit in their numbers; sets do not look at it. */
#define FATHOM_SYSCALL_X32 0x40000000u

struct fathom_syscall_set {
	uint64_t bits[FATHOM_SYSCALL_TABLES][FATHOM_SYSCALL_SET_NUMBERS / 64];
	bool has_unknown;
};

/* Makes @ret hold all calls. */
void fathom_syscall_set_fill(struct fathom_syscall_set *ret);
/*
 * Reads a set: names, classes ("%file", also without %) and regular expressions ("/^open") between
 * commas, "all", "none"; after "!" all but these. FATHOM_E_ARGUMENT says what is unknown;
 * FATHOM_E_MEMORY.
 */
fathom_err fathom_syscall_set_read(const char *text, struct fathom_syscall_set *ret,
				   struct fathom_errinfo *reterr);
/* Adds the call that has this name, if @machine has one. */
void fathom_syscall_set_add(struct fathom_syscall_set *set, uint32_t machine, const char *name);
/* Adds all calls of @more. */
void fathom_syscall_set_join(struct fathom_syscall_set *set, const struct fathom_syscall_set *more);
bool fathom_syscall_set_has(const struct fathom_syscall_set *set, uint32_t machine,
			    uint64_t number);

#endif
