/* SPDX-License-Identifier: MIT */
#include "host/trace/timestamp_pair.h"

#include <time.h>

#include "host/base/clock.h"
#include "trace/machine.h"

/* How long the clock of the processor is measured against the kernel's. */
#define MEASURE_NS 2000000

struct fathom_timestamp_pair fathom_timestamp_pair_read(int64_t begin_ns)
{
	struct fathom_timestamp_pair best = { 0, 0 };
	uint64_t shortest = UINT64_MAX;

	for (int i = 0; i < 3; i++) {
		const uint64_t before = fathom_trace_ticks();
		const int64_t ns = fathom_now_ns();
		const uint64_t took = fathom_trace_ticks() - before;

		if (took >= shortest)
			continue;
		shortest = took;
		best = (struct fathom_timestamp_pair){ before, (uint64_t)(ns - begin_ns) };
	}
	return best;
}

uint64_t fathom_trace_clock_rate(void)
{
	const struct timespec pause = { .tv_nsec = MEASURE_NS };
	const struct fathom_timestamp_pair a = fathom_timestamp_pair_read(0);
	struct fathom_timestamp_pair b;

	nanosleep(&pause, NULL);
	b = fathom_timestamp_pair_read(0);
	return b.ns > a.ns ? (b.ticks - a.ticks) * 1000 / ((b.ns - a.ns) / 1000000 + 1)
			   : UINT32_MAX;
}
