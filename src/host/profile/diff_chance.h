/* SPDX-License-Identifier: MIT */
/*
 * How probable it is that two counts of samples differ as much as they do, or more, though they
 * count the same: twice the smaller tail, at most 1. Below 1e-99 it is 0.
 */
#ifndef FATHOM_PROFILE_DIFF_CHANCE_H
#define FATHOM_PROFILE_DIFF_CHANCE_H

#include <stdint.h>

/*
 * Of @n_a samples @k_a are of the function, of @n_b others @k_b: both have the same share of it
 * (Fisher's exact test).
 */
double fathom_chance_of_shares(uint64_t k_a, uint64_t n_a, uint64_t k_b, uint64_t n_b);

/*
 * The function has @k_a samples where @exposure_a are expected for a weight of 1, and @k_b: both
 * have the same weight (binomial test of @k_a in all).
 */
double fathom_chance_of_rates(uint64_t k_a, double exposure_a, uint64_t k_b, double exposure_b);

#endif
