/* SPDX-License-Identifier: MIT */
/* The claim that holds at an address: as by looking at all of them, of those that overlap in every
 * way, too. */
#include "unit.h"

#include <stdlib.h>

#include "host/base/claims.h"

#define MOST 40

/* Returns the greatest order of those that have @address; 0: none has. */
static uint64_t look_at_all(const struct fathom_claim *claims, size_t n, uint64_t address)
{
	uint64_t found = 0;

	for (size_t i = 0; i < n; i++)
		if (address >= claims[i].start && address < claims[i].end &&
		    claims[i].order > found)
			found = claims[i].order;
	return found;
}

/* The same of the @n stretches, which are sorted. */
static uint64_t find(const struct fathom_claim *flat, size_t n, uint64_t address)
{
	const size_t i = FATHOM_BISECT(n, k, flat[k].end <= address);

	return i < n && flat[i].start <= address ? flat[i].order : 0;
}

static void random_claims(void **state)
{
	(void)state;
	srandom(1);
	for (int round = 0; round < 2000; round++) {
		struct fathom_claim claims[MOST];
		struct fathom_claim *flat = NULL;
		const size_t n = (size_t)random() % (MOST + 1);
		/* Few that overlap, or many; some are empty. */
		const uint64_t room = round % 2 ? 100 : 2000;
		size_t n_flat = 0;

		for (size_t i = 0; i < n; i++) {
			claims[i].start = (uint64_t)random() % room;
			claims[i].end = claims[i].start + (uint64_t)random() % 50;
			claims[i].order = n - i;
		}
		assert_int_equal(fathom_claims_flatten(claims, n, &flat, &n_flat), FATHOM_OK);
		assert_true(n_flat <= 2 * n);
		for (size_t i = 1; i < n_flat; i++)
			assert_true(flat[i - 1].end <= flat[i].start);
		for (uint64_t address = 0; address < room + 60; address++)
			assert_int_equal(find(flat, n_flat, address),
					 look_at_all(claims, n, address));
		free(flat);
	}
}

static void the_last_address_and_none(void **state)
{
	const struct fathom_claim claims[] = { { UINT64_MAX - 1, UINT64_MAX, 7 }, { 0, 1, 9 } };
	struct fathom_claim *flat = NULL;
	size_t n = 0;

	(void)state;
	assert_int_equal(fathom_claims_flatten(claims, 2, &flat, &n), FATHOM_OK);
	assert_int_equal(n, 2);
	assert_int_equal(find(flat, n, 0), 9);
	assert_int_equal(find(flat, n, 1), 0);
	assert_int_equal(find(flat, n, UINT64_MAX - 1), 7);
	assert_int_equal(find(flat, n, UINT64_MAX), 0);
	free(flat);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_claims),
		cmocka_unit_test(the_last_address_and_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
