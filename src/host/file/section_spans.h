/* SPDX-License-Identifier: MIT */
/*
 * The section at an address, found by bisection. Where sections overlap, as only tools make them
 * that want to, it is the first one of the table.
 */
#ifndef FATHOM_FILE_SECTION_SPANS_H
#define FATHOM_FILE_SECTION_SPANS_H

#include "host/base/array.h"

/* A section in memory: addresses from low up to high. */
struct fathom_section_place {
	uint64_t low;
	uint64_t high;
	uint32_t section; /* its number, from 1 */
};

/* Addresses from low up to the next span. */
struct fathom_section_span {
	uint64_t low;
	uint32_t section; /* 0: none */
};

struct fathom_section_spans {
	FATHOM_ARRAY_OF(struct fathom_section_span); /* sorted */
};

/*
 * Makes the spans of @n places, which it sorts; no place is empty, nor has a number twice. Takes
 * n log n. False without memory.
 */
bool fathom_section_spans_make(struct fathom_section_spans *spans,
			       struct fathom_section_place *places, size_t n);

/* Returns the number of the section at @svma; 0: there is none. */
uint32_t fathom_section_spans_at(const struct fathom_section_spans *spans, uint64_t svma);

#endif
