/* SPDX-License-Identifier: MIT */
/* Clocks, for programs that measure themselves. */
#ifndef FATHOM_PROFILE_CLOCK_OF_H
#define FATHOM_PROFILE_CLOCK_OF_H

#include <stdint.h>
#include <time.h>

/* Returns the time of @clock in ns. */
static uint64_t clock_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif
