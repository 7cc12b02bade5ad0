/* SPDX-License-Identifier: MIT */
/*
 * The memory of the running kernel, from /proc/kcore: an ELF core file (ET_CORE; System V gABI,
 * chapter 5) whose PT_LOAD segments are parts of the kernel's address space, read as they are now
 * (Linux, fs/proc/kcore.c).
 *
 * What the kernel has no page for inside a segment it shows as zeros: that cannot be told apart.
 */
#ifndef FATHOM_TARGET_KERNEL_KCORE_H
#define FATHOM_TARGET_KERNEL_KCORE_H

#include "host/target/target.h"

struct fathom_kcore;

/*
 * Opens the file at @path. FATHOM_E_OS when there is none, or it is not ours to read, with what
 * helps; FATHOM_E_CORRUPT, FATHOM_E_MEMORY.
 */
fathom_err fathom_kcore_open(const char *path, struct fathom_kcore **ret,
			     struct fathom_errinfo *reterr);
/* @k may be NULL. */
void fathom_kcore_close(struct fathom_kcore *k);

/* Reads up to @size bytes at @avma; returns how many there are before the first that is not. */
size_t fathom_kcore_read(const struct fathom_kcore *k, uint64_t avma, void *to, size_t size);

/* How numbers are written there. */
struct fathom_layout fathom_kcore_layout(const struct fathom_kcore *k);

#endif
