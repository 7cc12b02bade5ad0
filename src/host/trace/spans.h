/* SPDX-License-Identifier: MIT */
/*
 * Maps the numbers of sites in records to functions. Each module that is loaded into a traced
 * program has a span of numbers of its own, which are not used again: a number means the library
 * that was there when it was recorded.
 */
#ifndef FATHOM_TRACE_SPANS_H
#define FATHOM_TRACE_SPANS_H

#include "fathom/trace.h"
#include "fathom/unwind.h"
#include "host/base/array.h"
#include "host/base/key_map.h"
#include "host/base/memory.h"

/* A site that is recorded. */
struct fathom_span_site {
	uint64_t back; /* avma that its call of the hook returns to */
	uint32_t size; /* bytes of its function; 0: unknown */
	uint32_t number;
	uint32_t function; /* index in the span's functions */
	uint8_t place;     /* enum fathom_site_place */
	uint8_t wishes;    /* what it was chosen for: FATHOM_TRACE_AT_, FATHOM_WISH_UNDER */
	uint16_t frame;    /* words from the recorded stack pointer to the return address */
	bool has_no_fp;    /* what is recorded as frame pointer, or as caller, is something else */
	bool has_no_caller;
	bool is_slot;     /* it is a slot of calls, not a place in its function */
	bool has_returns; /* each return of its function is recorded, however it is left */
};

/* Where the functions of a module are, and how its frames lie. */
struct fathom_span_code {
	uint64_t low; /* avma */
	uint64_t high;
	uint64_t bias;
	uint32_t above; /* words from a recorded stack pointer to the CFA */
	const struct fathom_unwind_table *rules; /* NULL: unknown */
};

/* The sites of one module. */
struct fathom_span {
	uint32_t first; /* number */
	uint32_t last;
	struct fathom_sites *sites; /* has the texts; NULL: they are in arena */
	struct fathom_arena arena;
	struct {
		FATHOM_ARRAY_OF(struct fathom_trace_function);
	} functions;
	struct {
		FATHOM_ARRAY_OF(struct fathom_span_code);
	} code;
	bool lacks_returns;                       /* some that were to be recorded are not */
	FATHOM_ARRAY_OF(struct fathom_span_site); /* sorted by number once they are in spans */
};

struct fathom_span *fathom_span_create(void);
void fathom_span_destroy(struct fathom_span *span);
/* Sorts the sites. */
void fathom_span_finish(struct fathom_span *span);

#define FATHOM_SPAN_CACHE 4096

/* The result of a recent look-up. */
struct fathom_span_found {
	const struct fathom_trace_function *function;
	uint32_t number;
	uint8_t place;
	uint8_t wishes;
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
struct fathom_span_frame {
	uint32_t caller; /* low bits of where the call returns to */
	uint32_t words;
	bool is_by_fp;
};

/* All spans, sorted. All zero, there are none. */
struct fathom_spans {
	FATHOM_ARRAY_OF(struct fathom_span *);
	struct fathom_span_found cache[FATHOM_SPAN_CACHE];
	struct fathom_span_frame frames[FATHOM_SPAN_CACHE];
	bool has_slots;
	/* Functions with sites, by their linkage names, once there are slots. */
	struct {
		FATHOM_ARRAY_OF(const struct fathom_trace_function *);
	} named;
	struct fathom_key_map by_name;
};

/* Adds @span and takes it over, on failure, too; false without memory. */
bool fathom_spans_add(struct fathom_spans *s, struct fathom_span *span);
void fathom_spans_deinit(struct fathom_spans *s);

/* Returns the span that site @number is in; NULL: there is none. */
const struct fathom_span *fathom_spans_of(const struct fathom_spans *s, uint32_t number);

/*
 * Returns how the frame lies of the function that has the address with the low bits @caller; words
 * is 0 if that is unknown.
 */
const struct fathom_span_frame *fathom_spans_frame(struct fathom_spans *s, uint32_t caller);

/*
 * Finds site @number; NULL: there is none. Of a slot the function is that of a site of its name, if
 * there is one.
 */
const struct fathom_span_found *fathom_spans_find(struct fathom_spans *s, uint32_t number);

/* Returns whether both functions have one linkage name, versions aside. */
bool fathom_span_same_name(const struct fathom_trace_function *a,
			   const struct fathom_trace_function *b);

#endif
