/* SPDX-License-Identifier: MIT */
/* The clock of the processor beside the kernel's. */
#ifndef FATHOM_TRACE_TIMESTAMP_PAIR_H
#define FATHOM_TRACE_TIMESTAMP_PAIR_H

#include <stdint.h>

/* A moment by the clock of the processor, and by nanoseconds since the run began. */
struct fathom_timestamp_pair {
	uint64_t ticks;
	uint64_t ns;
};

/* Reads both clocks, without much between them. @begin_ns: of the monotonic clock, the run's. */
struct fathom_timestamp_pair fathom_timestamp_pair_read(int64_t begin_ns);

/* Measures how far the clock of the processor goes in a second. */
uint64_t fathom_trace_clock_rate(void);

#endif
