/* SPDX-License-Identifier: MIT */
/* Functions that take processor time, as the clock of their thread measures it. */
#include <stdint.h>
#include <time.h>

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

volatile uint64_t sink;

#define FUNCTION(name)                                  \
	uint64_t name(uint64_t ns)                      \
	{                                               \
		const uint64_t begin = now();           \
                                                        \
		while (now() - begin < ns)              \
			for (int i = 0; i < 10000; i++) \
				sink++;                 \
		return now() - begin;                   \
	}

FUNCTION(before)
FUNCTION(inside)
FUNCTION(inside_thread)
