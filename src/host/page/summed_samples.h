/* SPDX-License-Identifier: MIT */
/*
 * Samples of a page, or the calls of a trace, whose time is that of their end. A page has some
 * millions of them; of more, those with the same thread, node, place and part in one slice of time
 * become one.
 */
#ifndef FATHOM_PAGE_SUMMED_SAMPLES_H
#define FATHOM_PAGE_SUMMED_SAMPLES_H

#include "host/base/memory.h"
#include "host/page/data_columns.h"

/* Samples that are not summed. */
#define FATHOM_PAGE_SAMPLES ((size_t)1 << 21)

struct fathom_page_sample {
	uint64_t ns; /* of several: of the last one */
	uint64_t weight;
	uint64_t begin; /* of calls: of the first one; they end at ns, and took weight in all */
	uint32_t thread;
	uint32_t node;
	uint32_t place;
	uint32_t n; /* samples that it stands for */
	uint8_t part;
};

/* All zero but memory, duration and most, there are none. */
struct fathom_page_samples {
	FATHOM_ARRAY_OF(struct fathom_page_sample);
	const struct fathom_memory *memory;
	uint64_t duration; /* nanoseconds of the recording */
	size_t most;       /* that are not summed */
	uint64_t slice;    /* nanoseconds; 0: none are summed */
	bool are_calls;    /* of a trace, not samples */
	bool is_too_large; /* for the memory budget */
	bool no_memory;
};

void fathom_page_samples_add(struct fathom_page_samples *s, const struct fathom_page_sample *one);
/* Sorts the samples by time. */
void fathom_page_samples_sort(struct fathom_page_samples *s);
void fathom_page_samples_deinit(struct fathom_page_samples *s);

#endif
