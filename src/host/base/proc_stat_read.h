/* SPDX-License-Identifier: MIT */
#ifndef FATHOM_BASE_PROC_STAT_READ_H
#define FATHOM_BASE_PROC_STAT_READ_H

#include "safe/base/proc_stat.h"

/*
 * Reads the file stat at @path, seen from the directory @dir or AT_FDCWD. Returns false with errno:
 * ESRCH if the process or thread has ended, EPROTO if the file is none of that kind.
 */
bool fathom_proc_stat_read(int dir, const char *path, struct fathom_proc_stat *ret);

/* Does so for process or thread @pid. */
bool fathom_proc_stat_of(int pid, struct fathom_proc_stat *ret);

#endif
