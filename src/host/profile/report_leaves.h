/* SPDX-License-Identifier: MIT */
/* Leaves of a report: its samples, those with equal stacks added up. */
#ifndef FATHOM_PROFILE_REPORT_LEAVES_H
#define FATHOM_PROFILE_REPORT_LEAVES_H

#include "host/profile/report_rows.h"

/* All samples that have the same stack, and the same group. */
struct fathom_report_leaf {
	uint64_t weight;
	uint64_t n;     /* samples */
	uint32_t node;  /* of the profile; 0: none */
	uint32_t group; /* row; FATHOM_NONE: there are no groups */
	uint8_t part;   /* enum fathom_profile_part */
	uint8_t stop;   /* below FATHOM_REPORT_STOPS; ENTRY: nothing is missing */
};

/* All zero, there are none. */
struct fathom_report_leaves {
	FATHOM_ARRAY_OF(struct fathom_report_leaf);
	struct fathom_report_sums sums; /* all but what is shown */
	double squares;                 /* sum of the squares of the weights of all samples */
};

/*
 * Collects the leaves of the profile of @rows, within the time of its options. @l is all zero.
 * FATHOM_E_CHANGED, FATHOM_E_CANCELLED, FATHOM_E_MEMORY.
 */
fathom_err fathom_report_leaves_init(struct fathom_report_leaves *l,
				     const struct fathom_report_rows *rows,
				     struct fathom_errinfo *reterr);
/* Returns whether @ns is within the time of @o. */
bool fathom_report_is_within(const struct fathom_report_options *o, uint64_t ns);
/* Returns whether samples of @part are of the kind of time that @o asks for. */
bool fathom_report_is_asked(const struct fathom_report_options *o, uint8_t part);
/* Makes the leaf of one sample. */
void fathom_report_leaf_of(const struct fathom_report_rows *r,
			   const struct fathom_profile_sample *s, struct fathom_report_leaf *ret);
/* Fails unless the samples of @time, enum fathom_report_time, have a sum. */
fathom_err fathom_report_check_time(const struct fathom_profile *profile, uint32_t time,
				    struct fathom_errinfo *reterr);

/* Returns the least_share of @o of @weight. */
static inline uint64_t fathom_report_least_weight(const struct fathom_report_options *o,
						  uint64_t weight)
{
	return weight / 1000000 * o->least_share + weight % 1000000 * o->least_share / 1000000;
}

void fathom_report_leaves_deinit(struct fathom_report_leaves *l);

/* Returns the sum of the squares of the weights of all samples of @report. */
double fathom_report_squares(const struct fathom_report *report);

#endif
