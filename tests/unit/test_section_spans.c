/* SPDX-License-Identifier: MIT */
/* The section at an address: as by looking through the table, of sections that overlap in every
 * way, too. */
#include "unit.h"

#include <stdlib.h>

#include "host/file/section_spans.h"

#define MOST 40

/* Returns the first place in the order of numbers that has @svma. */
static uint32_t look_through(const struct fathom_section_place *places, size_t n, uint64_t svma)
{
	uint32_t found = 0;

	for (size_t i = 0; i < n; i++)
		if (svma >= places[i].low && svma < places[i].high &&
		    (!found || places[i].section < found))
			found = places[i].section;
	return found;
}

static void random_places(void **state)
{
	(void)state;
	srandom(1);
	for (int round = 0; round < 2000; round++) {
		struct fathom_section_spans spans = { .n = 0 };
		struct fathom_section_place places[MOST];
		const size_t n = (size_t)random() % (MOST + 1);
		/* Few that overlap, or many. */
		const uint64_t room = round % 2 ? 100 : 2000;

		for (size_t i = 0; i < n; i++) {
			places[i].low = (uint64_t)random() % room;
			places[i].high = places[i].low + 1 + (uint64_t)random() % 50;
			places[i].section = (uint32_t)(n - i);
		}
		assert_true(fathom_section_spans_make(&spans, places, n));
		assert_true(spans.n <= 2 * n);
		for (size_t i = 1; i < spans.n; i++)
			assert_true(spans.items[i - 1].low < spans.items[i].low);
		for (uint64_t svma = 0; svma < room + 60; svma++)
			assert_int_equal(fathom_section_spans_at(&spans, svma),
					 look_through(places, n, svma));
		assert_int_equal(fathom_section_spans_at(&spans, UINT64_MAX), 0);
		fathom_array_free(&spans);
	}
}

static void the_last_address_and_none(void **state)
{
	struct fathom_section_place places[] = { { UINT64_MAX - 1, UINT64_MAX, 7 }, { 0, 1, 9 } };
	struct fathom_section_spans spans = { .n = 0 };

	(void)state;
	assert_int_equal(fathom_section_spans_at(&spans, 5), 0);
	assert_true(fathom_section_spans_make(&spans, places, 2));
	assert_int_equal(fathom_section_spans_at(&spans, 0), 9);
	assert_int_equal(fathom_section_spans_at(&spans, 1), 0);
	assert_int_equal(fathom_section_spans_at(&spans, UINT64_MAX - 1), 7);
	assert_int_equal(fathom_section_spans_at(&spans, UINT64_MAX), 0);
	fathom_array_free(&spans);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_places),
		cmocka_unit_test(the_last_address_and_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
