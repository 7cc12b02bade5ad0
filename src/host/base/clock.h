/* SPDX-License-Identifier: MIT */
/* Clocks, and when machine and processes have started. */
#ifndef FATHOM_BASE_CLOCK_H
#define FATHOM_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "safe/base/proc_stat.h"

/* Returns @clock in nanoseconds; 0 if the kernel lacks it. */
int64_t fathom_clock_ns(clockid_t clock);

/* Returns the monotonic clock in nanoseconds. */
int64_t fathom_now_ns(void);

/* Returns when the machine was booted: seconds since the epoch. */
int64_t fathom_boot_time(void);

/* Returns when the process of @stat was started: seconds since the epoch; 0: unknown. */
int64_t fathom_start_time(const struct fathom_proc_stat *stat);

#endif
