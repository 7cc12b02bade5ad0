/* SPDX-License-Identifier: MIT */
/*
 * System calls without the C library, which may be in any state when a handler runs. They keep
 * errno. One file for each processor; on others sys_none.c refuses all calls.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_BASE_SYS_H
#define FATHOM_BASE_SYS_H

/* Makes system call @number (SYS_). Returns the kernel's result, or a negative errno. */
long fathom_sys(long number, long a, long b, long c, long d, long e, long f);

#endif
