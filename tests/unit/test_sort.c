/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <stdlib.h>

#include "safe/base/sort.h"

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* Asserts that keys are sorted, and values of equal keys stay in their order. */
static void check_sorted(size_t n, uint64_t mask, uint64_t seed)
{
	struct fathom_keyed *items = calloc(2 * n + 1, sizeof *items);
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		items[i] = (struct fathom_keyed){ next_random(&seed) & mask, i };
		sum += items[i].key ^ (i * 31);
	}
	fathom_sort_keyed(items, items + n, n);
	for (size_t i = 0; i < n; i++) {
		sum -= items[i].key ^ (items[i].value * 31);
		if (!i)
			continue;
		assert_true(items[i - 1].key <= items[i].key);
		if (items[i - 1].key == items[i].key)
			assert_true(items[i - 1].value < items[i].value);
	}
	assert_true(sum == 0);
	free(items);
}

static void sorts_stably_at_every_size(void **state)
{
	static const size_t sizes[] = { 0, 1, 2, 3, 31, 511, 512, 513, 5000 };
	/* The last three: two and four regions far apart, and too many. */
	static const uint64_t masks[] = { UINT64_MAX,
					  0xff,
					  0xffff0000,
					  7,
					  UINT64_C(1) << 63,
					  UINT64_C(0x8000000000ffffff),
					  UINT64_C(0x6000000001ffffff),
					  UINT64_C(0xf000000001ffffff) };

	(void)state;
	for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
		for (size_t m = 0; m < sizeof masks / sizeof *masks; m++)
			check_sorted(sizes[s], masks[m], 88172645463325252u + s);
}

static void upper_bound_counts_what_is_not_above(void **state)
{
	const uint64_t keys[] = { 2, 2, 4, 8, 8, 8, UINT64_MAX };

	(void)state;
	assert_int_equal(FATHOM_BISECT(7, i, keys[i] <= 0), 0);
	assert_int_equal(FATHOM_BISECT(7, i, keys[i] <= 2), 2);
	assert_int_equal(FATHOM_BISECT(7, i, keys[i] <= 3), 2);
	assert_int_equal(FATHOM_BISECT(7, i, keys[i] <= 8), 6);
	assert_int_equal(FATHOM_BISECT(7, i, keys[i] <= UINT64_MAX), 7);
	assert_int_equal(FATHOM_BISECT(0, i, keys[i] <= 5), 0);
	for (size_t n = 1; n <= 7; n++)
		for (uint64_t key = 0; key < 10; key++) {
			size_t expected = 0;

			while (expected < n && keys[expected] <= key)
				expected++;
			assert_int_equal(FATHOM_BISECT(n, i, keys[i] <= key), expected);
		}
}

static void lower_bound_counts_what_is_below(void **state)
{
	const struct fathom_keyed items[] = { { 2, 9 }, { 2, 8 }, { 4, 7 },         { 8, 6 },
					      { 8, 5 }, { 8, 4 }, { UINT64_MAX, 3 } };

	(void)state;
	assert_int_equal(FATHOM_BISECT(7, i, items[i].key < UINT64_C(1)), 0);
	assert_int_equal(FATHOM_BISECT(7, i, items[i].key < 2), 0);
	assert_int_equal(FATHOM_BISECT(7, i, items[i].key < 3), 2);
	assert_int_equal(FATHOM_BISECT(7, i, items[i].key < 8), 3);
	assert_int_equal(FATHOM_BISECT(7, i, items[i].key < 9), 6);
	assert_int_equal(FATHOM_BISECT(7, i, items[i].key < UINT64_MAX), 6);
	assert_int_equal(FATHOM_BISECT(0, i, items[i].key < 5), 0);
	for (size_t n = 1; n <= 7; n++)
		for (uint64_t key = 0; key < 10; key++) {
			size_t expected = 0;

			while (expected < n && items[expected].key < key)
				expected++;
			assert_int_equal(FATHOM_BISECT(n, i, items[i].key < key), expected);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sorts_stably_at_every_size),
		cmocka_unit_test(upper_bound_counts_what_is_not_above),
		cmocka_unit_test(lower_bound_counts_what_is_below),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
