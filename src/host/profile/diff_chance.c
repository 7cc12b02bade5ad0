/* SPDX-License-Identifier: MIT */
/*
 * Of k samples of the function, x are A's: a hypergeometric or binomial number. Its probabilities
 * are followed from the most probable x to both sides, each from the one beside it, and divided by
 * their sum: so they need no factorials.
 */
#include "host/profile/diff_chance.h"

#include <stdbool.h>

/* Probabilities below that part of the highest one are taken for none. */
#define TINY 1e-100

struct draws {
	double k;    /* samples of the function */
	double n_a;  /* samples of all functions */
	double n_b;  /* samples of all functions */
	double odds; /* of A, where the numbers of all samples do not matter; else 0 */
	double low;  /* the least x */
	double high; /* the highest x */
};

/* Returns the probability of @x + 1, divided by that of @x. */
static double ratio(const struct draws *d, double x)
{
	if (d->odds > 0)
		return (d->k - x) / (x + 1) * d->odds;
	return (d->k - x) / (x + 1) * ((d->n_a - x) / (d->n_b - d->k + x + 1));
}

/* Returns twice the smaller tail from @x on; @mode is near the most probable number. */
static double two_tails(const struct draws *d, double x, double mode)
{
	double all = 0;
	double below = 0; /* up to @x */
	double above = 0; /* from @x on */
	double least;
	double p = 1;

	for (double y = mode; p > TINY; y++) {
		all += p;
		below += y <= x ? p : 0;
		above += y >= x ? p : 0;
		if (y >= d->high)
			break;
		p *= ratio(d, y);
	}
	p = 1;
	for (double y = mode; y > d->low;) {
		y--;
		p /= ratio(d, y);
		if (p < TINY)
			break;
		all += p;
		below += y <= x ? p : 0;
		above += y >= x ? p : 0;
	}
	least = below < above ? below : above;
	return 2 * least < all ? 2 * least / all : 1;
}

static double clip(double value, double low, double high)
{
	const double whole = (double)(uint64_t)(value > 0 ? value : 0);

	return whole < low ? low : whole > high ? high : whole;
}

double fathom_chance_of_shares(uint64_t k_a, uint64_t n_a, uint64_t k_b, uint64_t n_b)
{
	struct draws d = { .k = (double)k_a + (double)k_b, .n_a = (double)n_a, .n_b = (double)n_b };

	if (!n_a || !n_b || k_a > n_a || k_b > n_b)
		return 1;
	d.low = d.k > d.n_b ? d.k - d.n_b : 0;
	d.high = d.k < d.n_a ? d.k : d.n_a;
	return two_tails(&d, (double)k_a,
			 clip((d.k + 1) * (d.n_a + 1) / (d.n_a + d.n_b + 2), d.low, d.high));
}

double fathom_chance_of_rates(uint64_t k_a, double exposure_a, uint64_t k_b, double exposure_b)
{
	struct draws d = { .k = (double)k_a + (double)k_b, .high = (double)k_a + (double)k_b };

	if (!(exposure_a > 0) || !(exposure_b > 0))
		return 1;
	d.odds = exposure_a / exposure_b;
	return two_tails(&d, (double)k_a, clip((d.k + 1) * d.odds / (1 + d.odds), 0, d.high));
}
