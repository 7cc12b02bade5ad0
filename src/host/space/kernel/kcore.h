/* SPDX-License-Identifier: MIT */
/*
 * The memory of the running kernel, from /proc/kcore: an ELF core file (ET_CORE; System V gABI,
 * chapter 5) whose PT_LOAD segments are parts of the kernel's address space, read as they are now
 * (Linux, fs/proc/kcore.c).
 *
 * Unmapped pages inside a segment read as zeros and cannot be distinguished from real ones.
 */
#ifndef FATHOM_KERNEL_KCORE_H
#define FATHOM_KERNEL_KCORE_H

#include "host/space/target.h"

struct fathom_kcore;

/*
 * Opens the file at @path. FATHOM_E_OS, with the remedy, if it is missing or not readable;
 * FATHOM_E_CORRUPT, FATHOM_E_MEMORY.
 */
fathom_err fathom_kcore_open(const char *path, struct fathom_kcore **ret,
			     struct fathom_errinfo *reterr);
/* @k may be NULL. */
void fathom_kcore_close(struct fathom_kcore *k);

/* Reads up to @size bytes at @avma, up to the first unreadable one; returns how many it read. */
size_t fathom_kcore_read(const struct fathom_kcore *k, uint64_t avma, void *to, size_t size);

/* Returns the layout of the kernel's memory. */
struct fathom_layout fathom_kcore_layout(const struct fathom_kcore *k);

#endif
