/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <stdlib.h>

#include "host/jit/code_table.h"

static struct fathom_memory memory = { .budget = UINT64_MAX };

static uint64_t order_at(const struct fathom_code_table *t, uint64_t avma)
{
	const struct fathom_claim *c = fathom_code_table_at(t, avma);

	return c ? c->order : 0;
}

static void the_last_claim_holds(void **state)
{
	const struct fathom_claim claims[] = { { 100, 200, 1 }, { 150, 160, 2 }, { 190, 250, 3 } };
	struct fathom_code_table t = { .memory = &memory };

	(void)state;
	assert_int_equal(fathom_code_table_add(&t, claims, 3), 0);
	assert_int_equal(order_at(&t, 99), 0);
	assert_int_equal(order_at(&t, 100), 1);
	assert_int_equal(order_at(&t, 149), 1);
	assert_int_equal(order_at(&t, 150), 2);
	assert_int_equal(order_at(&t, 159), 2);
	assert_int_equal(order_at(&t, 160), 1);
	assert_int_equal(order_at(&t, 189), 1);
	assert_int_equal(order_at(&t, 190), 3);
	assert_int_equal(order_at(&t, 249), 3);
	assert_int_equal(order_at(&t, 250), 0);
	fathom_code_table_clear(&t);
	assert_int_equal(order_at(&t, 100), 0);
}

static void a_claim_that_is_covered_is_gone_and_empty_ones_are_nothing(void **state)
{
	const struct fathom_claim first[] = { { 100, 200, 1 }, { 150, 150, 2 }, { 180, 120, 3 } };
	const struct fathom_claim second[] = { { 50, 300, 4 } };
	struct fathom_code_table t = { .memory = &memory };

	(void)state;
	assert_int_equal(fathom_code_table_add(&t, first, 3), 0);
	assert_int_equal(order_at(&t, 150), 1);
	assert_int_equal(fathom_code_table_add(&t, second, 1), 0);
	for (uint64_t a = 50; a < 300; a++)
		assert_int_equal(order_at(&t, a), 4);
	fathom_code_table_clear(&t);
}

static void claims_reach_to_the_last_address(void **state)
{
	const struct fathom_claim claims[] = { { UINT64_MAX - 10, UINT64_MAX, 1 },
					       { 0, UINT64_MAX - 5, 2 } };
	struct fathom_code_table t = { .memory = &memory };

	(void)state;
	assert_int_equal(fathom_code_table_add(&t, claims, 2), 0);
	assert_int_equal(order_at(&t, 0), 2);
	assert_int_equal(order_at(&t, UINT64_MAX - 6), 2);
	assert_int_equal(order_at(&t, UINT64_MAX - 5), 1);
	assert_int_equal(order_at(&t, UINT64_MAX - 1), 1);
	assert_int_equal(order_at(&t, UINT64_MAX), 0);
	fathom_code_table_clear(&t);
}

#define SPACE 512

/* However claims are batched, the result is that of writing each one over an array. */
static void all_addresses_are_as_if_written_one_by_one(void **state)
{
	unsigned seed = 1;

	(void)state;
	for (int run = 0; run < 300; run++) {
		struct fathom_code_table t = { .memory = &memory };
		uint64_t truth[SPACE] = { 0 };
		uint64_t order = 0;

		for (int batch = 0; batch < 12; batch++) {
			struct fathom_claim claims[40];
			const size_t n = (size_t)rand_r(&seed) % 40;

			for (size_t i = 0; i < n; i++) {
				const uint64_t start = (uint64_t)rand_r(&seed) % SPACE;
				uint64_t end = start + (uint64_t)rand_r(&seed) % 60;

				end = end < SPACE ? end : SPACE;
				claims[i] = (struct fathom_claim){ start, end, ++order };
				for (uint64_t a = start; a < end; a++)
					truth[a] = order;
			}
			assert_int_equal(fathom_code_table_add(&t, claims, n), 0);
			for (uint64_t a = 0; a < SPACE; a++)
				assert_int_equal(order_at(&t, a), truth[a]);
		}
		assert_true(t.n_levels <= 10);
		fathom_code_table_clear(&t);
	}
	assert_int_equal(memory.used, 0);
}

static void more_than_the_budget_is_refused(void **state)
{
	struct fathom_memory small = { .budget = 100 };
	struct fathom_code_table t = { .memory = &small };
	const struct fathom_claim claims[3] = { { 0, 1, 1 }, { 2, 3, 2 }, { 4, 5, 3 } };

	(void)state;
	assert_int_equal(fathom_code_table_add(&t, claims, 3), FATHOM_E_LIMIT);
	assert_int_equal(order_at(&t, 0), 0);
	fathom_code_table_clear(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_claim_holds),
		cmocka_unit_test(a_claim_that_is_covered_is_gone_and_empty_ones_are_nothing),
		cmocka_unit_test(claims_reach_to_the_last_address),
		cmocka_unit_test(all_addresses_are_as_if_written_one_by_one),
		cmocka_unit_test(more_than_the_budget_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
