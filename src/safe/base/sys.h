/* SPDX-License-Identifier: MIT */
/*
 * System calls without the C library, which may be in any state when a handler runs, and which
 * keeps errno. One file for each processor; sys_none.c, where there is none, refuses all.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_BASE_SYS_H
#define FATHOM_BASE_SYS_H

/* System call @number (SYS_); returns what the kernel does: the result, or a negative errno. */
long fathom_sys(long number, long a, long b, long c, long d, long e, long f);

#endif
