/* SPDX-License-Identifier: MIT */
/*
 * Source lines and instructions in a page, of the functions of a profile that weigh most on a
 * processor: lines around those with samples, and what stands there. A *spot* is an instruction
 * with samples: the page's places have the number of theirs, so that the viewer can sum up samples
 * of any range of time.
 */
#ifndef FATHOM_PAGE_SOURCE_DATA_H
#define FATHOM_PAGE_SOURCE_DATA_H

#include "fathom/profile_annotate.h"
#include "host/page/viewer_data.h"

struct fathom_page_spot;

/* All zero, there is none. */
struct fathom_page_source {
	struct fathom_annotation *annotation;
	const struct fathom_annotated_function *functions;
	size_t n;
	struct fathom_page_spot *spots; /* sorted by module and address */
	size_t n_spots;
	uint32_t *by_location; /* of the profile: numbers of spots; 0: it has none */
	char why[256];         /* why nothing was annotated; "": something was, or weighs enough */
	size_t left_out;       /* functions that weigh enough */
	size_t bytes;          /* in the page */
};

/*
 * Annotates the functions of @profile as @options say. Spots get numbers from *@n_spots + 1 on,
 * which is counted up. FATHOM_OK also if there is nothing, or no room for it.
 */
fathom_err fathom_page_source_init(struct fathom_page_source *s,
				   const struct fathom_profile *profile,
				   const struct fathom_report_options *options, uint32_t *n_spots,
				   struct fathom_errinfo *reterr);

/* Appends function @i of @s, which is @number in the page, unless it is too large. */
void fathom_page_source_put(struct fathom_page_source *s, size_t i, uint32_t number, size_t side,
			    struct fathom_page_data *d);

/* Appends the fact that says why functions have no source. */
void fathom_page_source_fact(const struct fathom_page_source *s, size_t side,
			     struct fathom_page_data *d);

void fathom_page_source_deinit(struct fathom_page_source *s);

#endif
