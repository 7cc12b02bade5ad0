/* SPDX-License-Identifier: MIT */
/* Clocks, and when machine and processes have started. */
#ifndef FATHOM_BASE_CLOCK_H
#define FATHOM_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Returns @clock in nanoseconds; 0 if the kernel lacks it. */
int64_t fathom_clock_ns(clockid_t clock);

/* Returns the monotonic clock in nanoseconds. */
int64_t fathom_now_ns(void);

/* Returns when the machine was booted: seconds since the epoch. */
int64_t fathom_boot_time(void);

/*
 * Returns when the process whose /proc/PID/stat has the text @stat was started: seconds since the
 * epoch; 0 if the text does not say.
 */
int64_t fathom_start_time(const char *stat);

#endif
