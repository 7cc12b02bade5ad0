/* SPDX-License-Identifier: MIT */
#include "host/base/clock.h"

#include <unistd.h>

#define NS_PER_SECOND INT64_C(1000000000)

int64_t fathom_clock_ns(clockid_t clock)
{
	struct timespec now;

	if (clock_gettime(clock, &now))
		return 0;
	return now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

int64_t fathom_now_ns(void)
{
	return fathom_clock_ns(CLOCK_MONOTONIC);
}

int64_t fathom_boot_time(void)
{
	return fathom_clock_ns(CLOCK_REALTIME) / NS_PER_SECOND -
	       fathom_clock_ns(CLOCK_BOOTTIME) / NS_PER_SECOND;
}

int64_t fathom_start_time(const struct fathom_proc_stat *stat)
{
	const long ticks = sysconf(_SC_CLK_TCK);

	if (ticks <= 0)
		return 0;
	return fathom_boot_time() + (int64_t)(stat->start_ticks / (unsigned long)ticks);
}
