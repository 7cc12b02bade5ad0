/* SPDX-License-Identifier: MIT */
/*
 * Maps the numbers of sites in records to functions. Each module that is loaded into a traced
 * program has a span of numbers of its own, which are not used again: a number means the library
 * that was there when it was recorded.
 */
#ifndef FATHOM_TRACE_SITE_RANGES_H
#define FATHOM_TRACE_SITE_RANGES_H

#include "fathom/trace.h"
#include "fathom/unwind.h"
#include "host/base/array.h"
#include "host/base/key_map.h"
#include "host/base/memory.h"

/* A site that is recorded. */
struct fathom_site_range_site {
	uint64_t back; /* avma that its call of the hook returns to */
	uint32_t size; /* bytes of its function; 0: unknown */
	uint32_t number;
	uint32_t function; /* index in the span's functions */
	uint8_t place;     /* enum fathom_site_place */
	uint8_t selection; /* what it was chosen for: FATHOM_TRACE_AT_, FATHOM_SELECT_UNDER */
	uint16_t frame;    /* words from the recorded stack pointer to the return address */
	bool has_no_fp;    /* what is recorded as frame pointer, or as caller, is something else */
	bool has_no_caller;
	bool is_slot;     /* it is a slot of calls, not a place in its function */
	bool has_returns; /* each return of its function is recorded, however it is left */
};

/* Where the functions of a module are, and how its frames lie. */
struct fathom_site_range_code {
	uint64_t low; /* avma */
	uint64_t high;
	uint64_t bias;
	uint32_t above; /* words from a recorded stack pointer to the CFA */
	const struct fathom_unwind_table *rules; /* NULL: unknown */
};

/* The sites of one module. */
struct fathom_site_range {
	uint32_t first; /* number */
	uint32_t last;
	struct fathom_sites *sites; /* has the texts; NULL: they are in arena */
	struct fathom_arena arena;
	struct {
		FATHOM_ARRAY_OF(struct fathom_trace_function);
	} functions;
	struct {
		FATHOM_ARRAY_OF(struct fathom_site_range_code);
	} code;
	bool lacks_returns; /* some that were to be recorded are not */
	FATHOM_ARRAY_OF(
		struct fathom_site_range_site); /* sorted by number once they are in spans */
};

struct fathom_site_range *fathom_site_range_create(void);
void fathom_site_range_destroy(struct fathom_site_range *span);
/* Sorts the sites. */
void fathom_site_range_finish(struct fathom_site_range *span);

#define FATHOM_SITE_RANGE_CACHE 4096

/* The result of a recent look-up. */
struct fathom_site_range_found {
	const struct fathom_trace_function *function;
	uint32_t number;
	uint8_t place;
	uint8_t selection;
	uint16_t frame;
	uint32_t size; /* bytes of the function */
	bool has_no_fp;
	bool has_no_caller;
	bool is_slot;
	bool has_returns;
};

/*
 * Where a function's return address lies when it calls: so many words above that of the call, or
 * above where its frame pointer leads.
 */
struct fathom_site_range_frame {
	uint32_t caller; /* low bits of where the call returns to */
	uint32_t words;
	bool is_by_fp;
};

/* All spans, sorted. All zero, there are none. */
struct fathom_site_ranges {
	FATHOM_ARRAY_OF(struct fathom_site_range *);
	struct fathom_site_range_found cache[FATHOM_SITE_RANGE_CACHE];
	struct fathom_site_range_frame frames[FATHOM_SITE_RANGE_CACHE];
	bool has_slots;
	/* Functions with sites, by their linkage names, once there are slots. */
	struct {
		FATHOM_ARRAY_OF(const struct fathom_trace_function *);
	} named;
	struct fathom_key_map by_name;
};

/* Adds @span and takes it over, on failure, too; false without memory. */
bool fathom_site_ranges_add(struct fathom_site_ranges *s, struct fathom_site_range *span);
void fathom_site_ranges_deinit(struct fathom_site_ranges *s);

/* Returns the span that site @number is in; NULL: there is none. */
const struct fathom_site_range *fathom_site_ranges_of(const struct fathom_site_ranges *s,
						      uint32_t number);

/*
 * Returns how the frame lies of the function that has the address with the low bits @caller; words
 * is 0 if that is unknown.
 */
const struct fathom_site_range_frame *fathom_site_ranges_frame(struct fathom_site_ranges *s,
							       uint32_t caller);

/*
 * Finds site @number; NULL: there is none. Of a slot the function is that of a site of its name, if
 * there is one.
 */
const struct fathom_site_range_found *fathom_site_ranges_find(struct fathom_site_ranges *s,
							      uint32_t number);

/* Returns whether both functions have one linkage name, versions aside. */
bool fathom_site_range_same_name(const struct fathom_trace_function *a,
				 const struct fathom_trace_function *b);

#endif
